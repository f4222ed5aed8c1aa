// Package rtnl asks the kernel, through rtnetlink, by which way an address is
// reached, and which interface has a name.
//
//	s, err := rtnl.Open()
//	way, err := s.WayTo(local, peer)
//	sought := s.Neighbour(way) == rtnl.Sought
//
// A [Socket] belongs to the network namespace of the thread that opened it. The
// kernel answers before the request returns, so nothing here waits.
package rtnl
