"""What happens by the clock, in the zone that the settings name."""

from dagster import DefaultScheduleStatus, ScheduleDefinition

from pipelines.asset_jobs import CHECK_FORMS, RETENTION


def retention_nightly(time_zone: str) -> ScheduleDefinition:
    """Remove what is old while few people work."""
    return ScheduleDefinition(
        name="retention_nightly",
        job_name=RETENTION,
        cron_schedule="30 3 * * *",
        execution_timezone=time_zone,
        default_status=DefaultScheduleStatus.RUNNING,
        description="Removes faults and workbooks that are older than the settings keep; import jobs stay.",
    )


def forms_hourly(time_zone: str) -> ScheduleDefinition:
    """Judge forms that say how fresh they must be: an import that does not come triggers nothing else."""
    return ScheduleDefinition(
        name="forms_hourly",
        job_name=CHECK_FORMS,
        cron_schedule="5 * * * *",
        execution_timezone=time_zone,
        default_status=DefaultScheduleStatus.RUNNING,
        description="Judges every form, so that one that gets no imports is noticed.",
    )
