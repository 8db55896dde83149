"""What the local cloud changes in the template, and what not."""

import copy

import pytest

from local.template import Template, localize, parse_template

TEXT = """
Conditions:
  IsOn: !Equals [!Ref Switch, "On"]
Resources:
  Layer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layers/shared}
  Function:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/submit_job, Timeout: 29}
  Api:
    Type: AWS::ApiGatewayV2::Api
    Properties: {ProtocolType: HTTP}
  Queue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 360}
"""


@pytest.fixture
def template() -> Template:
    """A small template."""
    return parse_template(TEXT)


def test_short_forms_become_long_ones() -> None:
    """CloudFormation's YAML tags are read as the functions that JSON spells out."""
    text = 'a: !Ref X\nb: !GetAtt X.Arn.Y\nc: !Sub "${X}"\nd: !If [On, !Ref Y, !Ref AWS::NoValue]\ne: !Condition On'
    assert parse_template(text) == {
        "a": {"Ref": "X"},
        "b": {"Fn::GetAtt": ["X", "Arn.Y"]},
        "c": {"Fn::Sub": "${X}"},
        "d": {"Fn::If": ["On", {"Ref": "Y"}, {"Ref": "AWS::NoValue"}]},
        "e": {"Condition": "On"},
    }


def test_only_code_and_the_apis_id_are_changed(template: Template) -> None:
    """Beside the addresses of the zips and one tag on the API, what is deployed is the template as it stands."""
    local = localize(template, lambda kind, folder: f"s3://code/{kind.rsplit('::', 1)[1]}/{folder}", "fixed")
    expected = copy.deepcopy(template)
    expected["Resources"]["Layer"]["Properties"]["ContentUri"] = "s3://code/LayerVersion/layers/shared"
    expected["Resources"]["Function"]["Properties"]["CodeUri"] = "s3://code/Function/functions/submit_job"
    expected["Resources"]["Api"]["Properties"]["Tags"] = {"ms-custom-id": "fixed"}
    assert local == expected


def test_the_template_given_stays_as_it_was(template: Template) -> None:
    """Localizing works on a copy."""
    before = copy.deepcopy(template)
    localize(template, lambda _kind, _folder: "s3://code/x", "fixed")
    assert template == before
