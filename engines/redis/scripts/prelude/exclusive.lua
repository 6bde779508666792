-- include: tokens
-- include: leases
-- include: holds
-- include: writing

-- What is asked for: the first five arguments of every acquisition of a lock, and its last, the
-- smallest token wanted. Numbers that only go back to the server stay text, which it reads faster.
local function claim_of(arguments, least)
    return {
        owner = arguments[1],
        ttl = arguments[2],
        count = arguments[3],
        floor = tonumber(arguments[4]),
        since = arguments[5],
        least = tonumber(least or 0)
    }
end

-- Grants a lock that nobody else has. What an earlier holder left behind goes.
local function grant_alone(claim, lock, holds, counter, fields)
    local left_over = redis.call('EXISTS', lock, holds) > 0
    if left_over then
        may_remove(holds)
    end
    local first = take_tokens(counter, claim.count, claim.floor, claim.least)
    if left_over then
        redis.call('DEL', lock, holds)
    end
    local text = hold_text(first, claim.count, claim.since)
    write_hold(lock, holds, claim.owner, claim.ttl, text, unpack(fields))
    return granted(first, claim.count)
end

-- Answers an owner that has what it asks for: the same tokens unless it wants larger ones, a lease
-- that is not shorter.
local function grant_again(claim, lock, holds, counter)
    local first, count, since = terms_of(redis.call('HGET', holds, claim.owner))
    local text
    if not first then
        first, count = take_tokens(counter, claim.count, claim.floor, claim.least), claim.count
        text = hold_text(first, count, claim.since)
    elseif first < claim.least then
        first = claim.least
        skip_tokens(counter, first + count - 1)
        text = hold_text(first, count, since)
    end
    extend(lock, claim.ttl)
    local left = math.max(redis.call('PTTL', lock), 1)
    redis.call('PEXPIRE', holds, left)
    if text then
        redis.call('HSET', holds, claim.owner, text)
        redis.call('PEXPIRE', holds, left)  -- it may be new
    end
    return granted(first, count)
end

-- Replaces the only holder's `field` by one that no owner can renew or release. The lock has its new
-- end before anything else changes, and is never without a field: then its end would be gone, too.
-- What may be refused is tried first, in ways that change nothing.
local function linger_alone(lock, field, holds, owner, linger)
    local text = as_lingering(redis.call('HGET', holds, owner))
    redis.call('HDEL', lock, owner .. ':lingering')
    redis.call('HSET', lock, field, redis.call('HGET', lock, field))
    redis.call('PEXPIRE', lock, linger)
    redis.call('HSET', lock, owner .. ':lingering', '1')
    redis.call('HDEL', lock, field)
    redis.call('HSET', holds, owner, text)
    redis.call('PEXPIRE', holds, linger)
    return {1, 0}
end

-- The answer to a release by an owner that does not have the lock. One that already lingers as it is
-- asked to was sent again.
local function not_mine(lock, owner, linger)
    if linger > 0 and redis.pcall('HEXISTS', lock, owner .. ':lingering') == 1 then
        return {1, 0}
    end
    return {0, 0}
end
