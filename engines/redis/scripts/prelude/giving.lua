-- include: tokens
-- include: writing

-- Whether anybody hears what is said on a channel. One whose process died does not. To be asked before
-- a lock is given away: how many a message reached says nothing of those who hear it from other
-- servers.
local function hears(publish, channel)
    local question = publish == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
    local count = redis.pcall('PUBSUB', question, channel)
    return not count.err and tonumber(count[2]) > 0
end
