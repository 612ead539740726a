"""The server of `rssc app`: whom it answers, what it takes, a queue that survives. Jobs are a script that pretends."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="starlette is not installed; pip install '.[app]'")

from starlette.testclient import TestClient

from rssc.app.run import Options
from rssc.app.runs import Runs, file_name
from rssc.app.server import make_app
from rssc.errors import InputError

posix = pytest.mark.skipif(sys.platform == "win32", reason="asks ps for processes")
TOKEN = "secret"
LIMIT = 100_000

PRETENDER = """
import json, os, subprocess, sys, time
kind, run, new = sys.argv[1:4]
name = json.load(open(os.path.join(run, "run.json")))["name"]
def tell(**message):
    print(json.dumps(message), flush=True)
tell(stage="tracking", share=0.5)
if "slow" in name:
    worker = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    open(os.path.join(os.environ["TMPDIR"], "left behind"), "w").close()
    open(os.path.join(run, "processes"), "w").write(f"{os.getpid()} {worker.pid}")
    time.sleep(60)
if "bad" in name:
    tell(error="bad.mp4 is no video; expected one.")
    sys.exit(2)
if "chatty" in name:
    print("not JSON", 7, sep="\\n")
if "crash" in name:
    os.abort()
tell(stage="tracking", share=1.0)
document = {"status": "ok", "verdict": "fine", "quantities": [1], "kind": kind, "projection": None}
json.dump(document, open(os.path.join(new, "document.json"), "w"))
os.makedirs(os.path.join(new, "exports"))
for name in ("7.jpg", "calibration.json", "report.html", "rectified.mp4", "exports/kalibr.zip"):
    open(os.path.join(new, name), "w").write(kind)
"""


def pretend(kind: str, folder: Path, new: Path) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", PRETENDER, kind, str(folder), str(new)]


def serve(folder: Path, **options):
    return TestClient(make_app(folder, TOKEN, LIMIT, pretend), base_url=f"http://127.0.0.1:8000/{TOKEN}", **options)


@pytest.fixture
def client(tmp_path):
    with serve(tmp_path) as client:
        yield client


def upload(client, name="clip.mp4", data=b"frames"):
    answer = client.post(f"runs?name={quote(name)}", content=data)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def run_of(client, name):
    return next(run for run in client.get("state").json()["runs"] if run["id"] == name)


def until(condition):
    for _ in range(400):
        if found := condition():
            return found
        time.sleep(0.025)
    raise AssertionError("never came true")


def ended(client, name):
    return until(lambda: (run := run_of(client, name))["job"]["state"] not in ("queued", "running") and run)


def calibrated(client, **options):
    name = upload(client, **options)
    ended(client, name)
    client.post(f"runs/{name}/calibrate", json={})
    ended(client, name)
    return name


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], check=False, capture_output=True, text=True)
    return found.stdout.strip()[:1] not in ("", "Z")


# Whom it answers.


@pytest.mark.parametrize(
    "path", ["/", "/state", "/wrong/state", f"/{TOKEN}x/", f"/x{TOKEN}/state", "/open/x", "//", "/é"]
)
def test_requests_without_the_token_are_refused(client, path):
    answer = client.get(f"http://127.0.0.1:8000{path}")
    assert answer.status_code == 403
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.0.1", "", "[::1"]
)
def test_other_hosts_are_refused(client, host):
    assert client.get("state", headers={"Host": host}).status_code == 403


def test_requests_of_other_pages_are_refused(client):
    assert client.post("runs?name=a.mp4", content=b"x", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("runs?name=a.mp4", content=b"x", headers={"Origin": "null"}).status_code == 403
    own = {"Origin": "http://127.0.0.1:8000"}
    assert client.post("runs?name=a.mp4", content=b"x", headers=own).status_code == 201
    assert client.get("state", headers={"Host": "localhost:8000"}).status_code == 200


def test_a_ticket_opens_the_page_once(tmp_path):
    app = make_app(tmp_path, TOKEN, LIMIT, pretend)
    with TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False) as client:
        ticket = app.ticket_path
        assert client.get(ticket).headers["location"] == f"/{TOKEN}/"
        assert client.get(ticket).status_code == 403


def test_pages_are_there_and_may_load_nothing_from_elsewhere(client):
    page = client.get("")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    for name in ("style.css", "app.js", "view.js", "dom.js"):
        text = client.get(name).text
        assert "http://" not in text
        assert "https://" not in text


# What it takes.


def test_a_video_is_kept_and_checked(client, tmp_path):
    name = upload(client, data=b"x" * 70_000)
    run = ended(client, name)
    assert run["job"]["state"] == "done"
    assert run["job"]["stages"][-1] == {**run["job"]["stages"][-1], "name": "tracking", "share": 1.0}
    assert run["check"]["kind"] == "check"
    assert (tmp_path / "runs" / name / "source" / "clip.mp4").read_bytes() == b"x" * 70_000
    assert client.get(f"runs/{name}/frames/7.jpg").text == "check"
    assert not (tmp_path / "runs" / name / "check" / "tmp").exists()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_video_above_the_limit_is_refused(client, tmp_path, chunked):
    data = b"x" * (LIMIT + 1)
    answer = client.post("runs?name=a.mp4", content=iter([data[:99_999], data[99_999:]]) if chunked else data)
    assert answer.status_code == 413
    assert "limit of 0.0001 GB" in answer.json()["error"]
    assert client.get("state").json()["ids"] == []
    assert not list((tmp_path / "incoming").glob("*")) if chunked else True


def test_a_video_that_the_disk_has_no_place_for_is_refused(client, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    answer = client.post("runs?name=a.mp4", content=b"x")
    assert answer.status_code == 413
    assert "left" in answer.json()["error"]


def test_an_empty_file_is_refused(client):
    answer = client.post("runs?name=a.mp4", content=b"")
    assert (answer.status_code, answer.json()) == (400, {"error": "a.mp4 is empty; expected a video file."})


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "..\\..\\x.mp4", "/etc/x.mp4", '<b>"&\'#?%.mp4', "日本語 クリップ.mp4", "🎥.mp4",
     "a\nb\x00.mp4", "..", ".mp4",
     "-o.mp4", "x" * 500 + ".mp4", "CON.mp4", "\u202egpm.4", " "],
)  # fmt: skip
def test_names_may_hold_anything(client, tmp_path, name):
    found = upload(client, name)
    assert ended(client, found)["name"] == (name.strip() or "video")
    files = list((tmp_path / "runs" / found / "source").iterdir())
    assert len(files) == 1
    assert files[0].read_bytes() == b"frames"
    assert {path.name for path in tmp_path.iterdir()} <= {"runs", "incoming"}
    client.post(f"runs/{found}/calibrate", json={})
    ended(client, found)
    answer = client.get(f"runs/{found}/exports/kalibr.zip")
    assert answer.status_code == 200
    assert "\n" not in answer.headers["content-disposition"]


def test_names_on_disk_stay_readable():
    assert file_name("GX010123.MP4") == "GX010123.MP4"
    assert file_name("C:\\videos\\mein Film (1).mov") == "mein Film (1).mov"
    assert len(file_name("語" * 300 + ".mp4").encode()) < 255


@pytest.mark.parametrize(
    "path", ["../../../../etc/passwd", "..%2f..%2frun.json", "run.json", "%2e%2e/run.json", "tmp", ""]
)
def test_only_files_of_the_result_are_given(client, path):
    name = calibrated(client)
    for place in ("results", "exports", "frames"):
        assert client.get(f"runs/{name}/{place}/{path}").status_code in (403, 404)
    assert client.get(f"runs/..%2f{name}/report").status_code == 404
    assert client.get(f"runs/{name}/results/calibration.json").text == "calibrate"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"lens": "wide"}, "lens is 'wide'; expected auto or one of pinhole"), ({"fps": "abc"}, "30000/1001"),
     ({"fps": "-1"}, "fps is -1; expected a positive number"), ({"first": "x"}, "first is 'x'"),
     ({"shell": "rm"}, "shell"), ([], "options")],
)  # fmt: skip
def test_options_are_refused_in_words(client, options, words):
    name = upload(client)
    ended(client, name)
    answer = client.post(f"runs/{name}/calibrate", json=options)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert run_of(client, name)["options"] == Options().model_dump()


def test_options_are_those_of_the_command_line():
    chosen = Options(lens="fisheye", fps="30000/1001", first=10).chosen()
    assert (chosen.lens, chosen.fps, chosen.frames) == ("fisheye", 30000 / 1001, (10, None))
    with pytest.raises(InputError, match="fps is '1/0'"):
        Options(fps="1/0").chosen()


# Jobs.


def test_errors_are_said_and_leave_what_was_there(client):
    name = upload(client, "bad.mp4")
    job = ended(client, name)["job"]
    assert (job["state"], job["error"]) == ("failed", "bad.mp4 is no video; expected one.")
    job = ended(client, upload(client, "crash.mp4"))["job"]
    assert job["state"] == "failed"
    assert "log.txt" in job["error"]
    assert ended(client, upload(client, "chatty.mp4"))["job"]["state"] == "done"


def test_a_result_is_shown_downloaded_and_kept(client):
    name = calibrated(client)
    assert client.get(f"runs/{name}/report").headers["content-security-policy"].startswith("sandbox")
    assert client.post(f"runs/{name}/calibrate", json={}).status_code == 400
    assert client.get(f"runs/{name}/rectified").status_code == 404
    client.post(f"runs/{name}/rectify")
    assert ended(client, name)["rectify"]["kind"] == "rectify"
    assert client.get(f"runs/{name}/rectified").text == "rectify"
    other = client.post(f"runs/{name}/again", json={"lens": "radial"}).json()["id"]
    assert ended(client, other)["options"]["lens"] == "radial"
    assert run_of(client, other)["check"] is not None
    assert client.get(f"compare/{name}/{other}").json()["kind"] == "compare"
    assert client.delete(f"runs/{name}").status_code == 200
    assert client.get(f"runs/{name}/report").status_code == 404
    assert client.get(f"runs/{other}/report").status_code == 200
    assert client.get("state").json()["ids"] == [other]


def test_runs_without_a_result_are_not_compared(client):
    name = upload(client)
    ended(client, name)
    answer = client.get(f"compare/{name}/{name}")
    assert answer.status_code == 400
    assert "calibrate it first" in answer.json()["error"]


@posix
def test_cancel_ends_the_job_with_its_workers(client, tmp_path):
    name = upload(client, "slow.mp4")
    told = tmp_path / "runs" / name / "processes"
    processes = [int(word) for word in until(lambda: told.exists() and told.read_text()).split()]
    assert all(map(alive, processes))
    waiting = upload(client, "next.mp4")
    assert run_of(client, waiting)["job"]["state"] == "queued"
    client.post(f"runs/{name}/cancel")
    assert run_of(client, name)["job"]["state"] == "cancelled"
    assert not any(map(alive, processes))
    assert not (tmp_path / "runs" / name / "new").exists()
    assert ended(client, waiting)["job"]["state"] == "done"


def test_one_job_runs_at_a_time_and_checks_go_first(client):
    slow, first, second = upload(client, "slow.mp4"), None, None
    until(lambda: run_of(client, slow)["job"]["state"] == "running")
    first, second = upload(client, "first.mp4"), upload(client, "second.mp4")
    assert client.post(f"runs/{first}/calibrate", json={}).status_code == 400  # it waits to be checked
    assert [run["job"]["state"] for run in client.get("state").json()["runs"]] == ["running", "queued", "queued"]
    client.post(f"runs/{second}/cancel")
    assert run_of(client, second)["job"]["state"] == "cancelled"
    client.post(f"runs/{second}/calibrate", json={})
    client.post(f"runs/{slow}/cancel")
    assert ended(client, second)["job"]["began"] >= ended(client, first)["job"]["ended"]


@posix
def test_the_queue_survives_a_restart(tmp_path):
    with serve(tmp_path) as client:
        done = calibrated(client)
        running = upload(client, "slow.mp4")
        told = tmp_path / "runs" / running / "processes"
        processes = [int(word) for word in until(lambda: told.exists() and told.read_text()).split()]
        waiting = upload(client, "waiting.mp4")
    assert not any(map(alive, processes))
    # As a killed server leaves it.
    (tmp_path / "runs" / running / "new").mkdir(exist_ok=True)
    (tmp_path / "incoming" / "0123456789ab").mkdir(parents=True)
    (tmp_path / "incoming" / "mine").mkdir()
    (tmp_path / "runs" / "mine").mkdir()
    (tmp_path / "runs" / "mine" / "run.json").write_text("{")
    states = {run["id"]: run["job"]["state"] for run in Runs(tmp_path).changes(-1)["runs"]}
    assert states == {done: "done", running: "queued", waiting: "queued"}
    assert [path.name for path in (tmp_path / "incoming").iterdir()] == ["mine"]
    with serve(tmp_path) as client:
        until(lambda: run_of(client, running)["job"]["state"] == "running")
        client.post(f"runs/{running}/cancel")
        assert ended(client, waiting)["job"]["state"] == "done"
        assert client.get(f"runs/{done}/report").text == "calibrate"
    assert (tmp_path / "runs" / "mine" / "run.json").read_text() == "{"


def test_a_page_is_told_only_what_is_new(client):
    name, other = upload(client, "a.mp4"), upload(client, "b.mp4")
    ended(client, name), ended(client, other)
    version = client.get("state").json()["version"]
    assert client.get(f"state?since={version}").status_code == 204
    client.post(f"runs/{other}/calibrate", json={})
    ended(client, other)
    news = client.get(f"state?since={version}").json()
    assert [run["id"] for run in news["runs"]] == [other]
    assert client.get("state?since=x").status_code == 400


# The processes and the command.


@posix
def test_workers_end_when_the_server_is_killed(tmp_path):
    script = (
        "import asyncio, sys; from pathlib import Path; from rssc.app.processes import start\n"
        "inner = 'import os, subprocess, sys, time; from rssc.app.processes import end_with_parent; end_with_parent();'"
        '\'worker = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]);\''
        "'print(os.getpid(), worker.pid, file=open(sys.argv[1], \"w\"), flush=True); time.sleep(60)'\n"
        "async def main():\n"
        "    folder = Path(sys.argv[1])\n"
        "    await start([sys.executable, '-c', inner, str(folder / 'processes')], folder, folder / 'log')\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    server = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    told = tmp_path / "processes"
    processes = [int(word) for word in until(lambda: told.exists() and told.read_text()).split()]
    assert all(map(alive, processes))
    server.send_signal(signal.SIGKILL)
    server.wait()
    until(lambda: not any(map(alive, processes)))


def test_the_command_says_what_to_install(monkeypatch, capsys):
    from rssc.cli import run

    monkeypatch.delitem(sys.modules, "rssc.app.launch", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(["app"]) == 2
    assert "pip install 'rssc[app]'" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [(["--port", "99999"], "port is 99999"), (["--limit", "0"], "limit is 0")])
def test_the_command_refuses_what_it_cannot_do(tmp_path, capsys, words, said):
    from rssc.cli import run

    assert run(["app", "--folder", str(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_or_port_that_is_in_use_is_said(tmp_path, capsys):
    import socket

    from rssc.app.launch import _alone
    from rssc.cli import run

    with _alone(tmp_path):
        assert run(["app", "--folder", str(tmp_path)]) == 2
    assert "another rssc app uses" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["app", "--folder", str(tmp_path), "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen on port" in capsys.readouterr().err
