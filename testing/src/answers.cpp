#include <string>

#include <holdfast/testing/answers.hpp>

namespace holdfast::testing {

namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

std::string describe(const failure& error) {
    if (!error) {
        return " without an error";
    }
    return " (" + make_error_code(error.code).message() + ": " + error.detail + ")";
}

const char* word(engines::acquire_reply::outcome outcome) {
    switch (outcome) {
        case engines::acquire_reply::outcome::granted:
            return "granted";
        case engines::acquire_reply::outcome::busy:
            return "busy";
        case engines::acquire_reply::outcome::failed:
            break;
    }
    return "failed";
}

const char* word(engines::renew_reply::outcome outcome) {
    switch (outcome) {
        case engines::renew_reply::outcome::renewed:
            return "renewed";
        case engines::renew_reply::outcome::gone:
            return "gone";
        case engines::renew_reply::outcome::failed:
            break;
    }
    return "failed";
}

const char* word(engines::release_reply::outcome outcome) {
    switch (outcome) {
        case engines::release_reply::outcome::released:
            return "released";
        case engines::release_reply::outcome::gone:
            return "gone";
        case engines::release_reply::outcome::failed:
            break;
    }
    return "failed";
}

const char* word(engines::revoke_reply::outcome outcome) {
    switch (outcome) {
        case engines::revoke_reply::outcome::revoked:
            return "revoked";
        case engines::revoke_reply::outcome::gone:
            return "gone";
        case engines::revoke_reply::outcome::failed:
            break;
    }
    return "failed";
}

template <class Reply, class Outcome>
AssertionResult answer_is(const Reply& reply, Outcome wanted) {
    if (reply.result == wanted) {
        return AssertionSuccess() << "the store answered " << word(reply.result);
    }
    return AssertionFailure() << "the store answered " << word(reply.result) << describe(reply.error)
                              << " instead of " << word(wanted);
}

AssertionResult error_is(const failure& error, errc wanted) {
    if (error.code == wanted) {
        return AssertionSuccess() << "the error is" << describe(error);
    }
    return AssertionFailure() << "the store answered" << describe(error) << " instead of \""
                              << make_error_code(wanted).message() << '"';
}

template <class Reply>
AssertionResult refused_with(const Reply& reply, errc reason) {
    if (reply.result != Reply::outcome::failed) {
        return answer_is(reply, Reply::outcome::failed);
    }
    return error_is(reply.error, reason);
}

AssertionResult no_error(const failure& error) {
    if (!error) {
        return AssertionSuccess();
    }
    return AssertionFailure() << "the store answered with an error" << describe(error);
}

}  // namespace

AssertionResult granted(const engines::acquire_reply& reply) {
    return answer_is(reply, engines::acquire_reply::outcome::granted);
}

AssertionResult busy(const engines::acquire_reply& reply) {
    return answer_is(reply, engines::acquire_reply::outcome::busy);
}

AssertionResult renewed(const engines::renew_reply& reply) {
    return answer_is(reply, engines::renew_reply::outcome::renewed);
}

AssertionResult released(const engines::release_reply& reply) {
    return answer_is(reply, engines::release_reply::outcome::released);
}

AssertionResult revoked(const engines::revoke_reply& reply) {
    return answer_is(reply, engines::revoke_reply::outcome::revoked);
}

AssertionResult gone(const engines::renew_reply& reply) {
    return answer_is(reply, engines::renew_reply::outcome::gone);
}

AssertionResult gone(const engines::release_reply& reply) {
    return answer_is(reply, engines::release_reply::outcome::gone);
}

AssertionResult gone(const engines::revoke_reply& reply) {
    return answer_is(reply, engines::revoke_reply::outcome::gone);
}

AssertionResult refused(const engines::acquire_reply& reply, errc reason) {
    return refused_with(reply, reason);
}

AssertionResult refused(const engines::renew_reply& reply, errc reason) {
    return refused_with(reply, reason);
}

AssertionResult refused(const engines::release_reply& reply, errc reason) {
    return refused_with(reply, reason);
}

AssertionResult refused(const engines::inspect_reply& reply, errc reason) {
    return error_is(reply.error, reason);
}

AssertionResult refused(const engines::latch_reply& reply, errc reason) {
    return error_is(reply.error, reason);
}

AssertionResult answered(const engines::inspect_reply& reply) {
    return no_error(reply.error);
}

AssertionResult answered(const engines::list_reply& reply) {
    return no_error(reply.error);
}

AssertionResult answered(const engines::latch_reply& reply) {
    return no_error(reply.error);
}

}  // namespace holdfast::testing
