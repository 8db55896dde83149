"""A job's inputs, from the broker's bucket to its machine."""

import pytest

from local.deploy import client
from local.stack import Stack
from tests.e2e.broker import Broker

pytestmark = pytest.mark.e2e

JOB = """
name: weigh
instance_specs: {{cpu_cores: 2, memory_gb: 4, spot: fallback}}
objective: expected_cost
expected_hours: 0.1
inputs:
- {{uri: "s3://{bucket}/inputs/{name}", location: aws/us-east-1, size_gb: 0.001, path: data/set}}
setup: {{run: 'test -s "$SPOTFERRY_INPUTS_DIR/data/set"'}}
task: {{run: 'echo "it weighs $(wc -c < "$SPOTFERRY_INPUTS_DIR/data/set") bytes"'}}
"""


def test_an_input_reaches_the_task(local_cloud: Stack) -> None:
    """Refused while it is not in the bucket, copied before setup once it is, and its transfer is in the proof."""
    with Broker(local_cloud) as broker:
        text = JOB.format(bucket=local_cloud.bucket, name="weigh.bin")
        refused = broker.send("POST", "/jobs", json={"job_file": text})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "inputs.0.uri"
        store = client("s3", local_cloud.emulator_url)
        store.put_object(Bucket=local_cloud.bucket, Key="inputs/weigh.bin", Body=bytes(123_456))
        job_id = broker.submit(text)
        done = broker.wait(job_id, "DONE")
        assert "it weighs 123456 bytes" in broker.log(job_id)
        plan = done["instances"][0]["plan"]
        assert plan["objective"] == "expected_cost"
        assert plan["chosen"]["run_transfer_usd"] >= 0
        broker.assert_machines_gone(job_id)
