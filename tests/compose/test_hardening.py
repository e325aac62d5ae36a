"""What docker-compose.yml promises about its containers, read from the file."""

import re
from pathlib import Path

import pytest

from workers.settings import DRAIN_SECONDS

PASSWORDS = {
    "POSTGRES_PASSWORD": "pg-pass",
    "REDIS_PASSWORD": "redis-pass",
    "BACKPROBE_API_KEY": "the-key-that-opens-all-of-the-service",
    "BACKPROBE_SECRET": "0123456789abcdef" * 2,
}
OURS = ["migrate", "api", "reaper", "worker-cpu", "executor-cpu", "worker-gpu", "executor-gpu"]
EXECUTORS = ["executor-cpu", "executor-gpu"]
SUPERVISORS = ["worker-cpu", "worker-gpu"]
ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
COMPOSE = ROOT / "docker-compose.yml"
BY_DIGEST = r"[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}"
OF_THE_SANDBOX = {
    "BACKPROBE_ISOLATION",
    "BACKPROBE_WARM_FURTHER",
    "BACKPROBE_GPU_MEMORY_FRACTION",
    "BACKPROBE_LOG",
    "BACKPROBE_LOG_LEVEL",
    "CUDA_VISIBLE_DEVICES",
}
"""What an executor may be told: how it confines programs, and nothing that a program could use."""

NOT_PASSED = {
    "BACKPROBE_BROKER_URL": "made of REDIS_PASSWORD",
    "BACKPROBE_DATABASE_URL": "made of POSTGRES_PASSWORD",
    "BACKPROBE_EXECUTOR": "the socket that the two containers share",
    "BACKPROBE_SANDBOX_UID": "for workers of root; containers have none",
    "BACKPROBE_TRUST_CODE": "an executor's container is the outer wall; it never refuses for want of a level",
}
"""Documented settings that mean nothing to someone who starts the file, with the reason."""


@pytest.fixture(scope="module")
def services(compose_with):
    return compose_with(PASSWORDS)["services"]


def test_the_file_has_the_services_of_the_architecture(services):
    assert set(services) == {"postgres", "redis", *OURS}
    assert {name for name, service in services.items() if service.get("profiles") == ["gpu"]} == {
        "worker-gpu",
        "executor-gpu",
    }


@pytest.mark.parametrize("name", PASSWORDS)
def test_without_a_password_compose_refuses(compose_with, unset, name):
    environ = {key: value for key, value in PASSWORDS.items() if key != name}
    with pytest.raises(unset, match=name):
        compose_with(environ)
    with pytest.raises(unset, match=name):
        compose_with(environ | {name: ""})


def test_no_password_has_a_default(compose_as_written):
    text = str(compose_as_written)
    for name in PASSWORDS:
        ways = set(re.findall(rf"\$\{{{name}(:.)?", text)) | set(re.findall(rf"\${name}\b(.?)", text))
        assert ways == {":?"}, name


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_executor_reaches_nothing_and_holds_no_secret(services, name):
    executor = services[name]
    assert executor["network_mode"] == "none"
    assert "networks" not in executor
    assert set(executor["environment"]) <= OF_THE_SANDBOX
    assert "env_file" not in executor
    assert "secrets" not in executor
    assert executor["volumes"] == [f"{name}:/run/backprobe"]
    assert not any(secret in str(executor) for secret in PASSWORDS.values())


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_executor_has_limits(services, name):
    executor = services[name]
    assert executor["pids_limit"] <= 1024
    assert executor["mem_limit"].endswith("g")
    assert float(executor["cpus"]) > 0
    assert all("size=" in mount for mount in executor["tmpfs"])


@pytest.mark.parametrize("name", OURS)
def test_every_container_of_ours_is_locked_down(services, name):
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"].split(":")[0] not in ("0", "root")
    assert not {"privileged", "pid", "ipc", "userns_mode", "cap_add", "devices"} & set(service)


def test_nothing_mounts_the_docker_socket_or_a_host_folder(services, compose_as_written):
    named = set(compose_as_written["volumes"])
    mounts = [mount for service in services.values() for mount in service.get("volumes", [])]
    assert {mount.split(":")[0] for mount in mounts} <= named


@pytest.mark.parametrize("name", SUPERVISORS)
def test_a_supervisor_shares_only_the_socket_with_its_executor(services, name):
    (mount,) = services[name]["volumes"]
    executor = name.replace("worker", "executor")
    assert mount == f"{executor}:/run/backprobe:ro"
    assert services[name]["environment"]["BACKPROBE_EXECUTOR"] == "/run/backprobe/executor.sock"
    assert "/run/backprobe/executor.sock" in services[executor]["command"]


def test_only_the_api_is_published_and_only_on_loopback(services):
    assert {name for name, service in services.items() if "ports" in service} == {"api"}
    assert services["api"]["ports"] == ["127.0.0.1:8000:8000"]
    assert services["api"]["environment"]["BACKPROBE_API_KEY"] == PASSWORDS["BACKPROBE_API_KEY"]


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_database_and_broker_stand_on_an_internal_network(services, compose_as_written, name):
    assert services[name]["networks"] == ["stores"]
    assert compose_as_written["networks"]["stores"]["internal"] is True


def test_redis_wants_its_password_and_evicts_nothing(services):
    redis = services["redis"]
    assert redis["environment"]["REDISCLI_AUTH"] == PASSWORDS["REDIS_PASSWORD"]
    assert "requirepass %s" in redis["command"][2]
    assert "maxmemory-policy noeviction" in redis["command"][2]
    assert redis["user"].split(":")[0] != "0"  # the image's entry point leaves root for `redis-server` only


@pytest.mark.parametrize("name", PASSWORDS)
def test_no_password_is_in_a_command_line(services, name):
    for service in services.values():
        words = [*service.get("command", []), *service.get("healthcheck", {}).get("test", [])]
        assert not any(PASSWORDS[name] in word for word in words)


def test_every_service_ends_in_order_rotates_its_log_and_has_a_limit_on_memory(services):
    for name, service in services.items():
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name
        assert re.fullmatch(r"\d+[gm]", service["mem_limit"]), name
        if name != "redis":  # it has nothing to keep
            assert int(service["stop_grace_period"].removesuffix("s")) >= DRAIN_SECONDS + 15, name


def test_images_of_others_are_named_by_digest(services):
    for name in ("postgres", "redis"):
        assert re.fullmatch(BY_DIGEST, services[name]["image"]), name
    text = DOCKERFILE.read_text()
    assert re.search(rf"^ARG PYTHON_IMAGE={BY_DIGEST}$", text, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]


def test_an_executor_serves_the_queue_of_its_worker(services):
    for name in SUPERVISORS:
        queue = name.removeprefix("worker-")
        command = services[name.replace("worker", "executor")]["command"]
        assert services[name]["command"] == ["worker", "--queue", queue]
        asked = command[command.index("--queue") + 1] if "--queue" in command else "cpu"
        assert asked == queue


def test_every_documented_setting_can_be_passed_in(compose_as_written):
    pages = ("settings.md", "install-and-upgrade.md", "metrics-and-logs.md")
    text = "\n".join((ROOT / "docs" / "operating" / page).read_text() for page in pages)
    documented = set(re.findall(r"BACKPROBE_[A-Z]+(?:_[A-Z]+)*|CUDA_VISIBLE_DEVICES", text))
    passed = {
        name
        for service in compose_as_written["services"].values()
        for name, value in (service.get("environment") or {}).items()
        if value is None or f"${{{name}:" in value
    }
    from_environment = set(re.findall(r"\$\{(\w+):", COMPOSE.read_text()))
    assert documented - passed - set(NOT_PASSED) - {"BACKPROBE_HOME"} - (from_environment - passed) == set()
    assert set(NOT_PASSED) & passed == set()


def test_every_lasting_service_has_a_health_check(services):
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"migrate"}


def test_everything_waits_for_the_migrations(services):
    for name in ("api", "reaper", *SUPERVISORS):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_the_image_runs_as_another_user_than_root():
    lines = DOCKERFILE.read_text().splitlines()
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 10001:10001"]
    assert not any(re.search(r"PASSWORD|API_KEY|SECRET|TOKEN", line) for line in lines)


def test_the_image_copies_every_package_that_the_distribution_holds(packages):
    copied = re.findall(r"^COPY (\w+) \1$", DOCKERFILE.read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(packages)


@pytest.fixture
def packages():
    text = (DOCKERFILE.parent / "pyproject.toml").read_text()
    return re.findall(r'"(\w+)"', re.search(r"^packages = \[(.*)\]", text, re.MULTILINE)[1])
