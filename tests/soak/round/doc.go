// Package round is one round of the soak: endpoints of one kind on one wire, with
// transactions, links and letters at once, while the network, the machines and strangers do
// what they do, and an oracle that looks at every byte.
//
//	plan := round.Draw(seed, round.UDP, time.Minute)
//	violations := round.Run(t, plan, &counts, "")
//
// What happens follows from the plan, and the plan from its seed. Over simnet time is
// virtual, and the same seed gives the same round, but for which of two goroutines runs
// first in one instant. On the real wires the kernel decides about the times.
//
// A plan is drawn in parts, each from dice of its own: a further one leaves the others as
// they are.
package round
