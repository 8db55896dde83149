"""What the template promises about queues, alarms, tables, the bucket and the functions' places."""

import re
from collections.abc import Mapping
from typing import Any

from benchmarks.imports import AS_DEPLOYED
from local.packaging import ROOT
from local.template import Template

FUNCTION = "AWS::Serverless::Function"
ALARM = "AWS::CloudWatch::Alarm"
QUEUE = "AWS::SQS::Queue"
TABLE = "AWS::DynamoDB::Table"
SIX_TIMES = 6
FREE_ALARMS = 10
PAID_ALARMS = 1  # ten cents of the idle month


def of_type(template: Template, kind: str) -> dict[str, Mapping[str, Any]]:
    """The properties of all resources of a type, by logical id."""
    return {name: r.get("Properties", {}) for name, r in template["Resources"].items() if r["Type"] == kind}


def snake(name: str) -> str:
    """CreateInstance as create_instance."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def timeout_seconds(template: Template, function: Mapping[str, Any]) -> int:
    """A function's timeout, its own or the global one."""
    return int(function.get("Timeout", template["Globals"]["Function"]["Timeout"]))


def test_one_verb_phrase_names_all_the_places(template: Template) -> None:
    """Each function's code, log group, service name and events carry its verb phrase."""
    for name, function in of_type(template, FUNCTION).items():
        phrase = snake(name.removesuffix("Function"))
        assert function["CodeUri"] == f"functions/{phrase}"
        assert function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == phrase
        assert function["LoggingConfig"]["LogGroup"] == {"Ref": f"{name.removesuffix('Function')}Logs"}
        assert any((ROOT / "events" / phrase).glob("*.json")), phrase


def test_log_groups_end_their_logs(template: Template) -> None:
    """Each function logs into a group of its own whose lines expire."""
    groups = of_type(template, "AWS::Logs::LogGroup")
    assert set(groups) == {name.removesuffix("Function") + "Logs" for name in of_type(template, FUNCTION)}
    assert all(group["RetentionInDays"] == {"Ref": "LogRetentionDays"} for group in groups.values())


def test_every_queue_has_a_dead_letter_queue_and_an_alarm_on_it(template: Template) -> None:
    """A message is tried five times, then kept where an alarm sees it."""
    queues = of_type(template, QUEUE)
    dead_letters = {name for name in queues if name.endswith("Dlq")}
    for name, queue in queues.items():
        if name in dead_letters:
            continue
        policy = queue["RedrivePolicy"]
        assert policy["maxReceiveCount"] == 5
        assert policy["deadLetterTargetArn"]["Fn::GetAtt"][0] in dead_letters
        assert (
            queue["MessageRetentionPeriod"]
            < queues[policy["deadLetterTargetArn"]["Fn::GetAtt"][0]]["MessageRetentionPeriod"]
        )
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in of_type(template, ALARM).values()
        if alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    }
    assert watched == dead_letters


def test_a_message_outlasts_its_function_six_times(template: Template) -> None:
    """A queue hides a message for six times the timeout of the function that takes it; effects come singly."""
    queues = of_type(template, QUEUE)
    sources = 0
    for function in of_type(template, FUNCTION).values():
        for event in function.get("Events", {}).values():
            if event["Type"] != "SQS":
                continue
            sources += 1
            queue = queues[event["Properties"]["Queue"]["Fn::GetAtt"][0]]
            assert queue["VisibilityTimeout"] >= SIX_TIMES * timeout_seconds(template, function)
            assert event["Properties"]["BatchSize"] == 1
            assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert sources == 2


def test_every_functions_errors_raise_an_alarm(template: Template) -> None:
    """No function fails unseen, and all alarms together cost ten cents a month at most."""
    alarms = of_type(template, ALARM).values()
    watched = {a["Dimensions"][0]["Value"]["Ref"] for a in alarms if a["Namespace"] == "AWS/Lambda"}
    assert watched == set(of_type(template, FUNCTION))
    assert len(alarms) <= FREE_ALARMS + PAID_ALARMS


def test_notices_that_cannot_be_handled_are_kept(template: Template) -> None:
    """Undelivered events and failed invocations of handle_interruption go to one queue, which the bus may write to."""
    function = of_type(template, FUNCTION)["HandleInterruptionFunction"]
    dead_letters = {"Fn::GetAtt": ["InterruptionDlq", "Arn"]}
    for event in function["Events"].values():
        assert event["Properties"]["DeadLetterConfig"] == {"Arn": dead_letters}
    assert function["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"] == dead_letters
    (policy,) = of_type(template, "AWS::SQS::QueuePolicy").values()
    assert policy["Queues"] == [{"Ref": "InterruptionDlq"}]


def test_tables_are_encrypted_on_demand_and_recoverable(template: Template) -> None:
    """Records can be brought back and not be deleted by mistake; bans, which live for minutes, expire by themselves."""
    for name, table in of_type(template, TABLE).items():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["SSESpecification"] == {"SSEEnabled": True}
        if name == "BansTable":
            assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at_epoch", "Enabled": True}
            continue
        when_protected = {"Fn::If": ["IsProtected", True, False]}
        assert table["DeletionProtectionEnabled"] == when_protected
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": when_protected}


def test_the_bucket_is_closed_and_cleans_up(template: Template) -> None:
    """No public access, no plain HTTP, nothing unencrypted, no leftovers of uploads that were given up."""
    (bucket,) = of_type(template, "AWS::S3::Bucket").values()
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["leftovers"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 2}
    assert {rule["Prefix"] for rule in rules.values() if "Prefix" in rule} == {
        "uploads/",
        "checkpoints/",
        "outputs/",
        "logs/",
        "catalog/",
    }
    (policy,) = of_type(template, "AWS::S3::BucketPolicy").values()
    (deny,) = policy["PolicyDocument"]["Statement"]
    assert deny["Effect"] == "Deny"
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": False}}


def test_defaults_are_those_of_a_real_deployment(template: Template) -> None:
    """Only the local cloud, which says so itself, is open, unprotected and without TLS."""
    parameters = template["Parameters"]
    assert parameters["Auth"]["Default"] == "AWS_IAM"
    assert parameters["Protection"]["Default"] == "On"
    assert parameters["BucketTls"]["Default"] == "On"
    assert parameters["PythonRuntime"]["Default"] == "python3.13"


def test_functions_start_as_they_are_measured(template: Template) -> None:
    """What the benchmark sets for an import is what the template sets for every function."""
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert AS_DEPLOYED.items() - {("AWS_DEFAULT_REGION", "us-east-1")} <= variables.items()
