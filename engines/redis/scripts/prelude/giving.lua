-- include: tokens
-- include: writing

-- Whether a channel has listeners; a process that died has none. Asked before a hand-over: the number
-- of listeners that a message reached leaves out those of other servers.
local function hears(publish, channel)
    local question = publish == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
    local count = redis.pcall('PUBSUB', question, channel)
    return not count.err and tonumber(count[2]) > 0
end
