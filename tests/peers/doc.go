// Package peers holds test doubles of the peers that exist in the field: the
// hardware engine of OpenCPI ([FPGA]), its two C++ drivers ([DG1], [DG2]) and
// the first of them as it was before 2021 ([NewLegacy]). They behave as the
// real ones were found to behave, defects included, and are written from that
// list of findings. Findings carry numbers, F1 to F20, D1-1 to D1-20, D2-1 to
// D2-13 and L1 to L6, which comments and violations cite.
//
// A double does two things: it answers as its original does, and it notes as a
// violation whatever its original would have died of, or silently ruined. A
// test passes if the work gets done and [Port.Violations] is empty.
//
//	fpga := peers.NewFPGA(conn, ours, peers.FPGAConfig{})
//	defer fpga.Close()
//
// Doubles share no parsing with the code under test, only the types of package
// frame. They have goroutines and timers of their own, and are made for virtual
// time (testing/synctest): timers are looked at every so often, as in the
// originals. The machine of a driver can be busy ([Busy]): then its threads stand
// still now and then, and what comes waits in a socket buffer of limited size.
//
// All methods may be called at the same time.
package peers
