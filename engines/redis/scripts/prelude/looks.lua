-- The error if a look (`pcall`) at a key was refused: nobody knows then what is there. That the key is
-- something else now is no such error: what was looked for is not there.
local function refusal(answer, command)
    local reason = type(answer) == 'table' and answer.err
    if not reason or string.find(reason, 'WRONGTYPE', 1, true) then
        return nil
    end
    return redis.error_reply(reason .. ' in `' .. command .. '`')
end
