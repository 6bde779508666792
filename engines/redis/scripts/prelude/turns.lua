-- A turn of the others: Redisson's waiters, the listeners that are not ours. They leave no request, and
-- they ask more slowly than ours do. So a free lock or permit is theirs alone for a while. Only our
-- clients respect that. The key holds the turn's number, the length of the message that announced it,
-- and lives for the time of the turn and `turn_kept_for` more. After that, as long as it lives:
--     seen    they came: a process of ours does not keep the lock among its threads
--     missed  nobody came: there is no other turn
-- A zero ahead of the number: they were seen to come just before. Without it whoever listens may wait
-- for something else, a lock of the same name in another database: if nobody comes to a plain lock
-- then, there is no other turn for longer, unless one of ours finds that others have the lock.
--
-- The others may be slow, or far away. So a turn that was missed makes the next one twice as long; one
-- that was used leaves the length as it is. A length that is not the usual one stands behind the state,
-- and is remembered for `length_kept_for` after it:
--     <state> <length in ms>
local turn_kept_for = 1000
-- Long enough for a Java program to wake up and ask. One that has longer is from before the server's
-- clock was set back, and counts no more.
local turn_lasts = 200
local longest_turn = 2000
local length_kept_for = 60000
-- There is no other turn for so many times the length of one that was missed.
local missed_by_known, missed_by_unknown = 5, 40
-- Their place among the requests.
local others_place = 'others'

-- The state of the turns, if there is any; for how many ms more; and how long a turn lasts.
local function turn_at(turn)
    local text = redis.call('GET', turn)
    if not text then
        return nil, 0, turn_lasts
    end
    local state, longer = string.match(text, '^(%w+) ?(%d*)$')
    local lasts = tonumber(longer) or turn_lasts
    local left = redis.call('PTTL', turn) - (longer ~= '' and length_kept_for or 0)
    local most = tonumber(state) and lasts + turn_kept_for or lasts * missed_by_unknown
    if left > most then
        redis.call('DEL', turn)
        return nil, 0, turn_lasts
    end
    return left > 0 and state or nil, left, lasts
end

-- The same without the time, and with one command where a turn lasts as long as usual.
local function turn_state(turn)
    local text = redis.call('GET', turn)
    if text and string.find(text, ' ', 1, true) then
        return turn_at(turn)
    end
    return text or nil, nil, turn_lasts
end

local function set_turn(turn, state, stays, lasts)
    if lasts > turn_lasts then
        state, stays = state .. ' ' .. lasts, stays + length_kept_for
    end
    redis.call('SET', turn, state, 'PX', stays)
end

local function turn_was_missed(turn, by, lasts)
    set_turn(turn, 'missed', by * lasts, math.min(2 * lasts, longest_turn))
end
