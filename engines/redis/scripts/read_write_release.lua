-- Releases what an owner has of a read/write lock, or keeps it for a while in nobody's name
-- (`linger`). Whether the owner reads or writes is for the lock to say: after a lost answer to an
-- upgrade or a downgrade its client does not know. The share of another reader is not touched. A
-- lingering reader keeps its field and its timeout key, so that Redisson respects it, and is marked
-- only beside the lock.
--
-- KEYS  lock, holds, channel, the owner's timeout key (number 1), turn of the others, if any
-- ARGV  owner, publish command, linger in ms (0: none), key prefix of the readers' timeout keys; if
--       there are turns: zeros ahead of the message, channel of those of ours who listen
-- Returns {1, clients told}, or {0, 0} when the owner does not have it. A third element says why nobody
--         could be told
-- include: exclusive
-- include: readers
-- include: looks
-- include: others

local lock, holds, channel, timeout, turn = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, linger, key_prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local zeros, listeners = ARGV[5] or '', ARGV[6]
local written = owner .. ':write'

-- If the lock is free now, it may be the turn of the others. Returns how many were told. Of the others
-- a writer's message wakes those who sleep already; one who is about to is woken by a reader's, which
-- is kept for it.
local function let_go(told, wrote)
    if listeners and told > 0 and redis.call('EXISTS', lock) == 0
        and begin_their_turn(turn, #zeros + 1, publish, channel, listeners) and wrote then
        tell(publish, channel, zeros .. '0')
    end
    return told
end

local fields = redis.pcall('HMGET', lock, 'mode', owner, written)
if fields.err or not fields[1] then
    return refusal(fields, 'HMGET') or {0, 0}
end
if fields[1] == 'write' and fields[3] then
    if linger > 0 then
        return linger_alone(lock, written, holds, owner, linger)
    end
    local told = remove_writer(lock, holds, owner, written, channel, publish, zeros)
    return {1, let_go(told, true), untold}
end
if not fields[2] then
    return not_mine(lock, owner, linger)
end
local hold = redis.call('HGET', holds, owner)
local alive = redis.call('EXISTS', timeout) == 1
if alive and lingers(hold) then
    return {linger > 0 and 1 or 0, 0}
end
if alive and linger > 0 then
    -- What may be refused is tried first, in ways that change nothing.
    local nothing = timeout_key(key_prefix, owner, 0)
    redis.call('PEXPIRE', nothing, '1')
    redis.call('HGETALL', nothing)
    redis.call('HSET', lock, owner, fields[2])
    redis.call('PEXPIRE', timeout, linger)
    set_field(holds, linger, owner, as_lingering(hold))
    local _, longest = readers_left(lock, key_prefix)
    if longest then
        redis.call('PEXPIRE', lock, longest)
    end
    return {1, 0}
end
local told = let_go(remove_reader(lock, holds, owner, timeout, channel, key_prefix, publish, zeros))
if not alive then
    return {0, 0}
end
return {1, told, untold}
