#pragma once

#include <cstdint>

namespace holdfast::core {

/// Mistakes in the simulator's copy of the core and of the performer, to see that the simulator would
/// find them. The sources themselves do not have them: core_mistakes.py says where in the copy each one
/// is.
enum class bug : std::uint8_t {
    none,
    deadline_from_receipt,      ///< validity counted from the reply, not from the request
    turn_from_receipt,          ///< the same for a grant in line
    granted_ttl_ignored,        ///< a lease counts for the ttl that was asked for
    deadline_ignored,           ///< only the store's word ends a lease
    gone_means_renewed,         ///< a renewal that found nothing counts as success
    renewal_outlives_release,   ///< renewal is stopped after the release, not before
    handover_keeps_token,       ///< the next thread gets the token of the one before
    handover_overruns_block,    ///< tokens beyond the reserved block
    cancelled_waiter_stays,     ///< a waiter that gave up is still handed the lock
    abandoned_grant_kept,       ///< a grant that comes after everybody left is not given back
    wish_kept,                  ///< one who gave up may still be given the lock by the store
    offer_ends_with_the_front,  ///< the one who was told it is free leaves, nobody else is told
    vacancy_kept,               ///< everybody who waited leaves, what is free here is not given back
    grant_lets_nobody_ask,      ///< one who asks in turn is let in, the others sleep on
    place_of_asker_not_taken,   ///< one who asks in turn gives up, nobody asks in its place
    doubt_for_everybody,        ///< one for whom nothing was asked is told that it may have the lock
    fixed_lease_extended,       ///< asking after a lease that is not renewed extends it
    resend_with_new_owner,      ///< after an unknown outcome, asks again as somebody else
    hint_while_asking_dropped,  ///< a notification during a request is forgotten
    no_recheck_after_watch,     ///< sleeps without asking again once the watch is in place
    release_assumed,            ///< an unanswered release counts as done, nobody cleans up
    refusal_is_final,           ///< a release that the store refused is not tried again
    max_hold_keeps_the_lock,    ///< a hold that reached its max_hold is not given back
    timer_stays_armed,          ///< (performer) after a tick, later moments than the last do not count
    watch_stays,                ///< (performer) a watch that nobody needs any more is kept
    first_look_forgotten,       ///< (performer) does not say that the watch is in place
    store_release_ignores_owner,   ///< (simulated store) release without owner check
    store_renewal_recreates,       ///< (simulated store) renewal re-creates what is gone
    store_forgets_to_notify,       ///< (simulated store) release without notification
    store_token_repeats,           ///< (simulated store) a grant does not advance the token
    quorum_of_half,                ///< half of the members is enough
    quorum_tokens_not_shared,      ///< the largest token is not written to the other members
    quorum_undoes_nothing,         ///< what a failed round got is kept
    quorum_counts_the_gone,        ///< a member that knows nothing of a hold renews it
    joint_unsorted,                ///< several names are taken in the order in which they were written
    joint_rollback_forgets_one,    ///< the last of those taken is not given back
    joint_rollback_cancelled,      ///< a caller that gave up does not give back either
    joint_refusal_not_told,        ///< one is taken here: those asked for with it never hear of it
    records_others_end_early,      ///< the store's time is taken for later than it is
    records_short_lease_not_told,  ///< a lease that the store ends sooner counts in full
    records_ended_hold_extended,   ///< a renewal counts that took effect after the lease's end
    records_late_hold_believed,    ///< likewise one that was not answered, as the record shows it
    records_gone_from_memory,      ///< "busy" and "gone" are said without asking the store
    records_doubt_forgotten,       ///< a write that was not answered is not thought of again
    records_silence_means_done,    ///< a write that was not answered counts as done
    records_edit_repeats,          ///< a record does not say which write made it
    records_conflict_overwritten,  ///< after a conflict, the same again over what is there
    records_second_release_believed,      ///< "gone" after a release that was not answered
    records_removed_while_held,           ///< the store may remove a record that is still needed
    records_tokens_start_over,            ///< tokens of a record that was removed start from one
    records_share_beside_exclusive,       ///< a share while another has it exclusively
    records_upgrade_among_others,         ///< an upgrade while others share
    records_upgrade_keeps_token,          ///< an upgrade without a new token
    records_permit_too_many,              ///< one permit more than there are
    records_release_takes_the_first,      ///< a release takes the first hold, whoever has it
    records_latch_counts_twice,           ///< a latch request that is sent again counts again
    nodes_validity_from_receipt,          ///< a session counts from the answer to its keep-alive
    nodes_granted_ttl_ignored,            ///< a hold counts for the ttl asked for, its session for less
    nodes_unanswered_keep_alive_counts,   ///< a keep-alive without an answer extends the session
    nodes_own_node_not_read,              ///< nobody ahead means granted, though the own node is gone
    nodes_writer_passes_readers,          ///< only the node next to a writer counts if it is a writer's
    nodes_reader_asks_its_neighbour,      ///< a reader looks at the node next to it only
    nodes_permits_overdrawn,              ///< the permits that are asked for do not count themselves
    nodes_lost_hold_not_swept,            ///< a late creation outlives a hold that an operator ended
    nodes_news_while_reading_dropped,     ///< news that come while the queue is read are forgotten
    nodes_name_not_watched_again,         ///< news of a name stop after a claim was in line
    nodes_turn_from_now,                  ///< a turn's ttl counts from the turn
    nodes_unanswered_creation_forgotten,  ///< a creation without an answer counts as not done
    nodes_late_creation_kept,             ///< what such a creation makes later is not removed
    nodes_removal_assumed,                ///< a removal without an answer counts as done
    nodes_lapsed_hold_stays,       ///< a hold whose ttl is over keeps its node while the session lives
    nodes_waiter_leaves_its_node,  ///< a waiter that gives up leaves its node in the queue
    nodes_upgrade_passes_others,   ///< a reader becomes a writer while others are ahead
    nodes_upgrade_keeps_token,     ///< a reader that becomes a writer keeps its token
    nodes_downgrade_lets_a_writer_in,  ///< a writer becomes a reader behind another writer
    nodes_linger_behind_others,        ///< a linger behind waiters does not keep them out
};

/// Whether this mistake is switched on (`testing::sim::planted_bug`).
[[nodiscard]] bool planted(bug which) noexcept;

}  // namespace holdfast::core
