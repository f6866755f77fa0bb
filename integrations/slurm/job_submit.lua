-- Sends jobs where gridcast expects them to end soonest. Runs in slurmctld, which waits for it at every submission:
-- it reads one small file that `gridcast_slurm.py refresh` writes, asks nothing over the network, and never refuses
-- a job. Without the file, or with an old one, jobs are submitted as they are.
--
-- A job asks with `--comment=gridcast:APPLICATION`. One without a partition gets the best that its user may use.
-- Its forecast is noted in the admin comment, for the epilog.

local RANKING = os.getenv("GRIDCAST_RANKING") or "/run/gridcast/ranking"
local MOST_AGE_SECONDS = 900
local PARTITION_UP = 3

-- Returns the lines of the ranking that are about `application`, the best first; none if the file is too old.
local function ranked(application)
    local found = {}
    local file = io.open(RANKING)
    if not file then
        return found
    end
    local written_at = tonumber(file:read("*l") or "")
    if written_at and math.abs(os.time() - written_at) <= MOST_AGE_SECONDS then
        for line in file:lines() do
            local name, partition, forecast, seconds = line:match("^([^\t]+)\t([^\t]+)\t(%d+)\t([%d.]+)$")
            if name == application then
                table.insert(found, { partition = partition, forecast = forecast, seconds = seconds })
            end
        end
    end
    file:close()
    return found
end

-- Returns whether the job may run in `name`: its user may use it, and it is up.
local function is_open(partitions, name)
    local partition = partitions[name]
    return partition ~= nil and (partition.state_up == nil or partition.state_up == PARTITION_UP)
end

local function choose(job, partitions)
    local application = (job.comment or ""):match("^gridcast:([%w._-]+)$")
    if not application then
        return
    end
    for _, candidate in ipairs(ranked(application)) do
        local is_wanted = job.partition == nil and is_open(partitions, candidate.partition)
        if is_wanted or job.partition == candidate.partition then
            job.partition = candidate.partition
            job.admin_comment = "gridcast:forecast=" .. candidate.forecast
            slurm.log_user(
                "gridcast: partition %s, ends within %s s (forecast %s)",
                candidate.partition, candidate.seconds, candidate.forecast
            )
            return
        end
    end
end

function slurm_job_submit(job, partitions, _)
    local is_done, problem = pcall(choose, job, partitions)
    if not is_done then
        slurm.log_error("gridcast: %s", tostring(problem))
    end
    return slurm.SUCCESS
end

function slurm_job_modify()
    return slurm.SUCCESS
end

return slurm.SUCCESS
