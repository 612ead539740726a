"""Bundle adjustment only, on your own tracks: here simulated ones, solved with all five methods."""

import rssc
from rssc.simulation.scenes import simulate_scene


def main() -> None:
    simulated = simulate_scene(3, point_count=200, pixel_noise=0.5)
    # Camera, tracks, points and poses; build this from your own data: rssc.Scene(camera, tracks, ...).
    scene, truth = simulated.scene, simulated.truth.camera
    print(f"truth    fx {truth.lens.fx:8.2f}             readout ratio {truth.shutter.readout_ratio:.4f}")
    for method in ("te", "ceq", "ceh", "dpq", "dph"):
        found = rssc.adjust(scene, method)
        camera, sigma = found.scene.camera, found.covariance.sigma
        print(
            f"{method:8s} fx {camera.lens.fx:8.2f} +- {sigma('fx'):.2f}     "
            f"readout ratio {camera.shutter.readout_ratio:.4f} +- {sigma('readout_ratio'):.4f}"
        )


if __name__ == "__main__":
    main()
