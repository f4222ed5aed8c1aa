// Package netns builds networks for tests out of what the kernel has: network
// namespaces, pairs of virtual Ethernet devices, packet filters, and a switch
// of its own that mistreats what passes through it.
//
//	netns.Require(t)
//	pair := netns.NewPair(t, 1500)
//	pair[0].In(func() { a, err = dgrdma.Open("udp:10.77.0.1", nil) })
//	pair[1].In(func() { b, err = dgrdma.Open("udp:10.77.0.2", nil) })
//	loss := pair[1].Lose(t, 5)
//
// Namespaces have no names: the kernel removes them, with everything in them,
// when the last socket and descriptor is closed, even if the process was killed. Programs that are no
// tests make them with [Open] and [OpenPair].
//
// Sockets belong for ever to the namespace in which they were made, so only
// opening and connecting must happen within [Namespace.In].
package netns
