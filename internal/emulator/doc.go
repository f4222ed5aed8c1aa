// Package emulator carries packets between two network devices as a slow path
// would: a bottleneck each way, with a queue, a delay, and losses.
//
//	p, err := emulator.Parse("rate=20M,rtt=40ms,queue=1bdp,loss=1%")
//	router, err := emulator.Start(p, portA, portB) // files of packet sockets
//	...
//	router.Close()
//	for _, f := range router.Flows() {
//		fmt.Println(f.From, f.To, f.Counts.Dropped, f.Delay95)
//	}
//
// # Model
//
// Each way a packet passes a bottleneck (package transport/bottleneck), loss,
// and half of the round trip. Packets of IP of all kinds and DG/RDMA frames are
// carried so; what neighbours need to find each other passes at once. Bytes are those
// of IP packets, and of the payload of other frames.
//
// # Exactness
//
// A packet comes when the kernel says that it did. So rate, queue and losses are
// exact also where the process gets a processor late; only the arrival at the
// other side is as late then. One thread carries both ways. It sleeps when nothing
// is due, with a timer slack of a nanosecond, and is scheduled before others if
// this user may ask for that. It delivers several packets at once: the first of
// them up to a hundredth of the round trip late, and 200 us at most.
//
// # Limits
//
// One thread carries all. On two processors that had other work as well (a load of
// 13), TCP by bbr got 426 to 470 Mbit/s of a path of 500. Where both ends and the
// router take all of the processors, look at that before a figure is believed.
// The devices have no offloads: the caller switches them off. Of flows the
// first 1,000 are told apart; the others count together.
package emulator
