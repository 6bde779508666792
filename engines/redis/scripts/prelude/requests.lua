-- Requests for a plain lock, which a release hands over: a list of the waiters that want that, in the
-- order in which they came,
--     <owner> <ttl in ms> <token count> <alive until> <number of the question> <token counter>
--     and ` unheard <from>` of one that cannot listen: it asks again soon after that time
-- and the places of the others (`turns`). It goes by itself soon after the last of them asked. It is
-- short, because whoever asks looks for itself in all of it. When it is full the last place goes to
-- whoever asks last, and the one that had it asks again soon: so nobody is kept out for ever. A list
-- that is longer than `most_requests` is somebody else's, and is neither read through nor changed.

-- include: places

-- The place of this owner's request, from 1, and its text; or nil and the number of requests, of a list
-- that is somebody else's one more than there may be.
local function request_of(owner, key)
    local requests = redis.pcall('LRANGE', key, '0', most_requests)
    local start = owner .. ' '
    local count = requests.err and 0 or #requests
    for place = 1, count do
        if string.sub(requests[place], 1, #start) == start then
            return place, requests[place]
        end
    end
    return nil, count
end

local function take_back_request(owner, key)
    local place, request = request_of(owner, key)
    if place then
        redis.call('LREM', key, '1', request)
    end
end
