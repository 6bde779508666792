-- The error if a read of a key (`pcall`) was refused: then its value is not known. A key of another
-- type is no such error: the lock is not there.
local function refusal(answer, command)
    local reason = type(answer) == 'table' and answer.err
    if not reason or string.find(reason, 'WRONGTYPE', 1, true) then
        return nil
    end
    return redis.error_reply(reason .. ' in `' .. command .. '`')
end
