"""What is installed in a cluster is complete, gives few rights, and is the same every time."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from interlock.control.lease import SYSTEM_NAMESPACE
from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import PARTS, manifests, to_json, to_yaml, usual_parts
from interlock.kube.slots.ghost_manifest import GhostSettings
from interlock.kube.webhook.app import COMPLETE_PATH, HOLD_PATH, VALIDATE_PATH
from interlock.kube.webhook.certificate import service_names
from interlock.modes.cli.main import main
from interlock.resources.adopted import QUEUE_LABEL
from interlock.resources.kinds import our_kinds
from interlock.resources.metadata import GROUP
from interlock.runtimes.workers.protocol import PATH

EVERYWHERE = Installation()
ONE_NAMESPACE = Installation(namespace="batch", everywhere=False)
EITHER = pytest.mark.parametrize("install", [EVERYWHERE, ONE_NAMESPACE], ids=["all", "one"])


def objects_of(
    install: Installation, parts: tuple[str, ...] = PARTS
) -> dict[tuple[str, str], dict[str, Any]]:
    found = {(one["kind"], one["metadata"]["name"]): one for one in manifests(install, parts)}
    assert len(found) == len(manifests(install, parts))
    return found


class TestPermissions:
    def test_nobody_is_given_everything(self) -> None:
        for install in (EVERYWHERE, ONE_NAMESPACE):
            for one in objects_of(install).values():
                for rule in one.get("rules", ()):
                    words = (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
                    assert not [word for word in words if "*" in word]
                    assert "pods/exec" not in rule["resources"]
                    if "secrets" in rule["resources"] and rule["verbs"] != ["create"]:
                        assert rule["resourceNames"] == ["interlock-webhook"]
                        assert one["kind"] == "Role"

    def test_one_namespace_needs_nothing_of_the_cluster_but_our_kinds_there(self) -> None:
        outside = {kind.plural for kind in our_kinds() if not kind.namespaced}
        for (kind, name), one in objects_of(ONE_NAMESPACE, usual_parts(ONE_NAMESPACE)).items():
            if kind.startswith("ClusterRole"):
                assert name.startswith("interlock-batch-")
                for rule in one.get("rules", ()):
                    assert rule["apiGroups"] == [GROUP]
                    assert {text.partition("/")[0] for text in rule["resources"]} <= outside
            elif kind != "CustomResourceDefinition":
                assert one["metadata"]["namespace"] == "batch"
        assert ("Namespace", "batch") not in objects_of(ONE_NAMESPACE)

    def test_one_namespace_changes_no_queue_of_others(self) -> None:
        rules = objects_of(ONE_NAMESPACE)["ClusterRole", "interlock-batch-controller"]["rules"]
        verbs: dict[str, set[str]] = {}
        for rule in rules:
            for name in rule["resources"]:
                verbs.setdefault(name, set()).update(rule["verbs"])

        assert verbs == {
            "queues": {"get", "list", "watch"},
            "queuequotas": {"get", "list", "watch", "create", "delete"},
            "queuequotas/status": {"update"},
        }

    def test_who_edits_one_namespace_changes_no_queue_unless_that_is_said_too(self) -> None:
        found = objects_of(ONE_NAMESPACE)

        def changed(kind: str, name: str) -> set[str]:
            rules = found[kind, name]["rules"]
            return {
                name for rule in rules if "update" in rule["verbs"] for name in rule["resources"]
            }

        inside = changed("Role", "interlock-editor")
        assert "jobs" in inside
        assert not inside & {"queues", "queuequotas"}
        assert changed("ClusterRole", "interlock-batch-editor") == {"queues"}
        assert changed("ClusterRole", "interlock-batch-viewer") == set()

    def test_only_our_own_namespace_is_made_strict(self) -> None:
        """In a namespace of another name there may be pods of others."""
        strict = "pod-security.kubernetes.io/enforce"
        ours = objects_of(EVERYWHERE)["Namespace", SYSTEM_NAMESPACE]["metadata"]["labels"]
        other = objects_of(Installation(namespace="batch"))["Namespace", "batch"]["metadata"]

        assert ours[strict] == "restricted"
        assert strict not in other["labels"]

    def test_people_only_read_locks(self) -> None:
        editor = objects_of(EVERYWHERE)["ClusterRole", "interlock-editor"]

        verbs = {v for r in editor["rules"] if "locks" in r["resources"] for v in r["verbs"]}
        assert verbs == {"get", "list", "watch"}
        assert editor["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"

    @EITHER
    def test_every_binding_leads_to_a_role_and_the_account(self, install: Installation) -> None:
        found = objects_of(install)
        bindings = [one for (kind, _), one in found.items() if kind.endswith("RoleBinding")]

        # In one namespace what is outside of it is a right of its own.
        assert len(bindings) == (4 if install.everywhere else 5)
        for one in bindings:
            assert (one["roleRef"]["kind"], one["roleRef"]["name"]) in found
            (subject,) = one["subjects"]
            assert (subject["kind"], subject["name"]) in found
            assert subject["namespace"] == install.namespace


class TestController:
    def test_its_pods_have_few_rights(self) -> None:
        made = objects_of(EVERYWHERE)["Deployment", "interlock-controller"]["spec"]
        pod = made["template"]["spec"]
        (container,) = pod["containers"]

        assert made["replicas"] == 2
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"

    def test_selectors_find_its_pods(self) -> None:
        found = objects_of(EVERYWHERE)
        labels = found["Deployment", "interlock-controller"]["spec"]["template"]["metadata"]
        budget = found["PodDisruptionBudget", "interlock-controller"]["spec"]

        assert found["Service", "interlock"]["spec"]["selector"] == labels["labels"]
        assert budget["selector"]["matchLabels"] == labels["labels"]
        monitor = found["ServiceMonitor", "interlock"]["spec"]["selector"]["matchLabels"]
        assert monitor.items() <= found["Service", "interlock"]["metadata"]["labels"].items()

    @EITHER
    def test_its_ports_have_the_names_that_others_use(self, install: Installation) -> None:
        found = objects_of(install)
        pod = found["Deployment", "interlock-controller"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        services = {port["name"]: port for port in found["Service", "interlock"]["spec"]["ports"]}

        assert {port["targetPort"] for port in services.values()} == ports.keys()
        assert container["readinessProbe"]["httpGet"]["port"] in ports
        (endpoint,) = found["ServiceMonitor", "interlock"]["spec"]["endpoints"]
        assert endpoint["port"] in services
        assert f"--listen=0.0.0.0:{ports['https']}" in container["args"]
        assert f"--webhook-listen=0.0.0.0:{ports['webhook']}" in container["args"]

    def test_there_are_as_many_as_were_asked_for(self) -> None:
        made = objects_of(replace(EVERYWHERE, replicas=3))["Deployment", "interlock-controller"]

        assert made["spec"]["replicas"] == 3

    def test_it_is_told_its_image_and_its_namespace(self) -> None:
        install = replace(ONE_NAMESPACE, image="registry.example/interlock:7")
        (container,) = objects_of(install)["Deployment", "interlock-controller"]["spec"][
            "template"
        ]["spec"]["containers"]

        assert container["image"] == "registry.example/interlock:7"
        assert "--namespace=$(POD_NAMESPACE)" in container["args"]


@EITHER
class TestWebhook:
    def hooks(self, install: Installation) -> list[dict[str, Any]]:
        return [
            hook
            for (kind, _), one in objects_of(install).items()
            if kind.endswith("WebhookConfiguration")
            for hook in one["webhooks"]
        ]

    def test_it_is_asked_at_the_service(self, install: Installation) -> None:
        service = objects_of(install)["Service", "interlock"]
        ports = {port["port"] for port in service["spec"]["ports"]}
        paths = []
        for hook in self.hooks(install):
            asked = hook["clientConfig"]["service"]
            assert asked["namespace"] == service["metadata"]["namespace"]
            assert asked["name"] == service["metadata"]["name"]
            assert asked["port"] in ports
            paths.append(asked["path"])
        assert paths == [VALIDATE_PATH, VALIDATE_PATH, COMPLETE_PATH, HOLD_PATH, HOLD_PATH]

    def test_one_that_is_down_stops_nobody_but_who_puts_a_stop_off(
        self, install: Installation
    ) -> None:
        hooks = self.hooks(install)
        hook, pods = (one for one in hooks if one["failurePolicy"] != "Ignore")
        assert hook["failurePolicy"] == "Fail"
        assert [(one["operations"], one["resources"]) for one in hook["rules"]] == [
            (["UPDATE"], ["jobs"])
        ]
        assert "killAt" in hook["matchConditions"][1]["expression"]
        assert {one["sideEffects"] for one in hooks} == {"None"}
        # Pods that ask for a Queue are nobody else's, and could not be held back later.
        assert [(one["operations"], one["resources"]) for one in pods["rules"]] == [
            (["CREATE"], ["pods"])
        ]

    def test_of_what_others_make_only_that_is_sent_which_asks_for_a_queue(
        self, install: Installation
    ) -> None:
        holding = self.hooks(install)[-2:]
        asks = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]}
        assert [one["objectSelector"] for one in holding] == [asks, asks]
        assert [one["failurePolicy"] for one in holding] == ["Ignore", "Fail"]
        without = self.hooks(replace(install, adopts=False))
        assert [one["name"] for one in without] == [one["name"] for one in self.hooks(install)[:-2]]

    def test_the_controller_does_not_ask_itself(self, install: Installation) -> None:
        for hook in self.hooks(install):
            assert install.account in hook["matchConditions"][0]["expression"]

    def test_it_is_asked_about_the_namespaces_that_are_served(self, install: Installation) -> None:
        for hook in self.hooks(install):
            here = {"matchLabels": {"kubernetes.io/metadata.name": "batch"}}
            assert hook.get("namespaceSelector") == (None if install.everywhere else here)

    def test_the_controller_may_change_these_and_no_others(self, install: Installation) -> None:
        found = objects_of(install)
        name = "interlock" if install.everywhere else "interlock-batch"
        (rule,) = found["ClusterRole", f"{name}-webhook"]["rules"]

        assert rule["resourceNames"] == [name]
        assert rule["verbs"] == ["get", "patch"]
        assert ("ValidatingWebhookConfiguration", name) in found
        assert ("MutatingWebhookConfiguration", name) in found


@EITHER
class TestWorkers:
    def found(self, install: Installation) -> dict[tuple[str, str], dict[str, Any]]:
        return objects_of(replace(install, worker_app="broker:app"), ("workers",))

    def test_they_may_connect_and_nothing_else(self, install: Installation) -> None:
        found = self.found(install)
        name = f"{install.cluster_name}-worker"
        (account,) = (one for (kind, _), one in found.items() if kind == "ServiceAccount")
        binding = found["ClusterRoleBinding", name]

        assert found["ClusterRole", name]["rules"] == [
            {"nonResourceURLs": [PATH], "verbs": ["get"]}
        ]
        assert [kind for kind, _ in found if "Role" in kind] == [
            "ClusterRole",
            "ClusterRoleBinding",
        ]
        assert binding["roleRef"]["name"] == name
        (subject,) = binding["subjects"]
        assert subject["name"] == account["metadata"]["name"]
        assert subject["namespace"] == account["metadata"]["namespace"] == install.namespace

    def test_they_find_the_controller(self, install: Installation) -> None:
        pod = self.found(install)["Deployment", "interlock-worker"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        service = objects_of(install)["Service", "interlock"]
        ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
        place = f"interlock.{install.namespace}.svc:{ports['https']}"

        assert container["args"][0] == "broker:app"
        assert f"--server=https://{place}" in container["args"]
        assert container["image"] == install.image
        (authority,) = (one["secret"] for one in pod["volumes"] if "secret" in one)
        assert authority["secretName"] == install.secret
        assert [item["key"] for item in authority["items"]] == ["ca.crt"]


class TestSlots:
    INSTALL = Installation(namespace="batch", slots=True, scheduler_image="scheduler:1")

    def found(self) -> dict[tuple[str, str], dict[str, Any]]:
        return objects_of(self.INSTALL, ("controller", "slots"))

    def test_the_scheduler_asks_where_the_controller_answers(self) -> None:
        found = self.found()
        text = found["ConfigMap", "interlock-slot-scheduler"]["data"]["configuration.json"]
        (extender,) = json.loads(text)["extenders"]
        service = found["Service", "interlock"]["spec"]["ports"]
        (port,) = (port for port in service if port["name"] == "extender")
        (container,) = _containers(found["Deployment", "interlock-controller"])
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}

        assert extender["urlPrefix"] == f"https://interlock.batch.svc:{port['port']}/extender"
        assert f"--extender-listen=0.0.0.0:{ports[port['targetPort']]}" in container["args"]
        assert extender["tlsConfig"]["serverName"] in service_names("interlock", "batch")
        assert not extender["ignorable"]

    def test_it_finds_its_configuration_and_whom_to_trust(self) -> None:
        found = self.found()
        deployment = found["Deployment", "interlock-slot-scheduler"]
        (container,) = _containers(deployment)
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["volumes"]}
        text = found["ConfigMap", "interlock-slot-scheduler"]["data"]["configuration.json"]

        assert container["image"] == "scheduler:1"
        assert f"--config={mounts['configuration']}/configuration.json" in container["args"]
        assert volumes["authority"]["secret"]["secretName"] == self.INSTALL.secret
        (extender,) = json.loads(text)["extenders"]
        assert extender["tlsConfig"]["caFile"] == f"{mounts['authority']}/ca.crt"

    def test_it_has_a_lease_and_no_more_rights_than_schedulers_have(self) -> None:
        found = self.found()
        text = found["ConfigMap", "interlock-slot-scheduler"]["data"]["configuration.json"]
        lease = json.loads(text)["leaderElection"]
        (_, own) = found["Role", "interlock-slot-scheduler"]["rules"]
        bound = [one["roleRef"]["name"] for (kind, _), one in found.items() if "Binding" in kind]

        assert own["resourceNames"] == [lease["resourceName"]]
        assert lease["resourceNamespace"] == "batch"
        assert sorted(name for name in bound if name.startswith("system:")) == [
            "system:kube-scheduler",
            "system:volume-scheduler",
        ]

    def test_ghosts_come_before_nobody(self) -> None:
        priority = self.found()["PriorityClass", GhostSettings().priority_class]

        assert priority["value"] < 0
        assert priority["preemptionPolicy"] == "Never"

    def test_there_is_none_of_it_where_nobody_asked(self) -> None:
        text = to_yaml(manifests(EVERYWHERE, PARTS))

        assert "extender" not in text
        assert "slot-scheduler" not in text


def _containers(deployment: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deployment["spec"]["template"]["spec"]["containers"]
    return found


class TestText:
    @EITHER
    def test_yaml_and_json_say_the_same(self, install: Installation) -> None:
        objects = manifests(install, PARTS)

        assert list(yaml.safe_load_all(to_yaml(objects))) == objects
        assert json.loads(to_json(objects))["items"] == objects
        assert to_yaml(objects) == to_yaml(manifests(install, PARTS))

    def test_it_can_be_read(self) -> None:
        text = to_yaml(manifests(EVERYWHERE, PARTS))

        assert not re.search(r"[&*]id\d", text)
        assert "Enqueue: Wait in line.\n" in text


class TestVerb:
    def printed(self, capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
        assert main(["manifests", *argv]) == 0
        told = capsys.readouterr()
        assert told.err == ""
        return list(yaml.safe_load_all(told.out))

    def test_what_every_cluster_can_take_is_usual(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = self.printed(capsys)

        assert found == manifests(EVERYWHERE, ["crds", "rbac", "controller", "webhook"])
        assert found == manifests(EVERYWHERE)

    def test_one_namespace_has_no_webhook(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = self.printed(capsys, "--namespace", "batch", "--namespaced")

        assert found == manifests(ONE_NAMESPACE, ["crds", "rbac", "controller"])

    @pytest.mark.parametrize("part", PARTS)
    def test_one_part(self, part: str, capsys: pytest.CaptureFixture[str]) -> None:
        where = ("--namespace", "batch", "--namespaced")
        found = self.printed(capsys, "--only", part, *where, "--image", "x:1")

        assert found == manifests(replace(ONE_NAMESPACE, image="x:1"), [part])
        assert found

    def test_what_was_chosen(self, capsys: pytest.CaptureFixture[str]) -> None:
        chosen = ("--namespace", "batch", "--replicas", "3", "--service-monitor")
        found = self.printed(capsys, *chosen)

        install = Installation(namespace="batch", replicas=3)
        assert found == manifests(install, (*usual_parts(install), "monitor"))

    def test_workers(self, capsys: pytest.CaptureFixture[str]) -> None:
        chosen = ("--worker-app", "broker:app", "--worker-image", "broker:1")
        found = self.printed(capsys, *chosen, "--worker-replicas", "3", "--worker-concurrency", "8")

        install = replace(
            EVERYWHERE,
            worker_app="broker:app",
            worker_image="broker:1",
            worker_replicas=3,
            worker_concurrency=8,
        )
        assert found == manifests(install, (*usual_parts(install), "workers"))

    def test_slots(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = self.printed(capsys, "--slots", "--scheduler-image", "scheduler:1")

        install = replace(EVERYWHERE, slots=True, scheduler_image="scheduler:1")
        assert found == manifests(install, (*usual_parts(install), "slots"))

    @pytest.mark.parametrize(
        "argv",
        [
            ("--slots", "--namespaced", "--namespace", "batch"),
            ("--scheduler-image", "scheduler:1"),
            ("--scheduler-image", "a b", "--slots"),
        ],
    )
    def test_slots_that_cannot_be(
        self, argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["manifests", *argv]) != 0
        told = capsys.readouterr()
        assert told.out == ""
        assert argv[0] in told.err

    def test_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        (found,) = self.printed(capsys, "-o", "json")

        assert found["kind"] == "List"
        assert found["items"] == manifests(EVERYWHERE)

    @pytest.mark.parametrize(
        "argv",
        [
            ["--namespace", "A_b"],
            ["--namespaced"],
            ["--image", "a b"],
            ["--replicas", "-1"],
            ["--replicas", "x"],
            ["--worker-app", "broker"],
            ["--worker-app", "broker:app", "--worker-replicas", "-1"],
            ["--worker-app", "broker:app", "--worker-concurrency", "0"],
            ["--worker-app", "broker:app", "--worker-image", "a b"],
            ["--worker-image", "x:1"],
            ["--only", "x"],
            ["-o", "wide"],
        ],
    )
    def test_bad_input(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["manifests", *argv]) == 2
        assert capsys.readouterr().out == ""
