"""Calibrates the camera of a video and undistorts its first frame with OpenCV: python calibrate_video.py clip.mp4."""

import sys

import cv2

import rssc


def main(source: str) -> None:
    calibration = rssc.calibrate(source)
    lens, shutter = calibration.camera.lens, calibration.camera.shutter
    print(f"{lens.model}: fx {lens.fx:.2f} +- {1.96 * calibration.sigma('fx'):.2f} pixels")
    print(f"readout {1e3 * calibration.readout_time_s:.3f} ms, {shutter.readout_ratio:.4f} of the frame interval")
    print(calibration.status, *calibration.reasons, sep="\n  ")
    calibration.save("calibration.json")

    video = cv2.VideoCapture(source)
    video.set(cv2.CAP_PROP_ORIENTATION_AUTO, 0)  # the calibration is of the image as the sensor read it
    _, frame = video.read()
    matrix, distortion = calibration.camera_matrix, calibration.distortion_coefficients
    if lens.family == "fisheye":
        flat = cv2.fisheye.undistortImage(frame, matrix, distortion, Knew=matrix)
    else:
        flat = cv2.undistort(frame, matrix, distortion)
    cv2.imwrite("undistorted.png", flat)


if __name__ == "__main__":
    main(sys.argv[1])
