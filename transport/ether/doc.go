// Package ether carries frames in raw Ethernet frames (specification, section
// 5.1). The frame header begins right behind the EtherType, 0xF042 unless
// configured.
//
//	conn, err := ether.Listen(ether.Config{Interface: "eth0", ID: 1})
//	if err != nil {
//		return err
//	}
//	e, err := dgrdma.New(conn, &dgrdma.Config{ID: 1, Memory: memory})
//
// # Privileges
//
// Packet sockets need the capability CAP_NET_RAW; Listen says how to grant it.
// CAP_NET_ADMIN makes larger buffers possible and is not needed.
//
// # Frames
//
// What is received has our EtherType, was sent to the address of the interface
// (not broadcast, not overheard), came untagged over that very interface, and
// names our endpoint id as destination. The kernel's filter sees to it, so that
// any number of endpoints and processes share an interface without waking each
// other. For a VLAN or a bond, name its interface: eth0.5, bond0.
//
// Short frames are not padded here. Real links do it, pairs of virtual
// interfaces do not, and no receiver needs it but FPGA, whose padding the
// engine writes itself. What link padding a received frame has stays on it.
//
// # Ring
//
// Frames are received through memory that the kernel shares: a slot for each, which
// the kernel fills, and we read in place. It has 8 MiB, or up to 32 if it takes as much
// to have 2048 slots, unless Config.Buffer says otherwise. There is no limit of the
// system on it, and to look whether something came takes no call. It carries 1.03 times
// at MTU 1500 and 1.6 times at 9000 of what system calls do. With Config.NoRing those
// are made after all, and an endpoint at rest takes no memory of the kernel's; and
// where the system refuses the memory, as sandboxes do, unless Config.NeedRing is set.
//
// Slots are as long as Config.MTU. Longer frames of peers, up to what the interface
// carries, wait in the socket's buffer, and take a call.
//
// What Recv returned lies in that memory. Who reads it when the Conn is not reachable
// any more, closed or not, may find no memory there, and dies: keep the Conn, with
// [runtime.KeepAlive] where nothing else does, or copy.
//
// # Sending
//
// Frames leave by one of two ways. By an AF_XDP socket the kernel takes them out of memory that it
// shares, and hands them to the driver: no queueing discipline, filter or capture of this machine sees
// them. It takes 0.5 to 0.6 of the processor time of the other way at MTU 1500, and 0.9 at 9000. The
// other way, system calls on the packet socket, is there everywhere. It is taken with Config.NoXDP;
// where the system refuses the AF_XDP socket, or a queueing discipline shapes the interface's traffic,
// unless Config.NeedXDP is set; and while the interface is away or carries less than it did. Both
// send the same bytes. [Conn.WithoutXDP] tells which way it is, and why.
//
// A reason that may pass (a queue that is in use, locked memory, a narrower MTU, a queueing discipline) has
// Send try again, at first after 0.1 s and at last every 10 s. [Config.OnWay] is told.
//
// The socket is in copy mode, which changes nothing about the device, takes one of its queues, and has no
// program in the kernel. Zero copy takes the receive buffers of the queue from the interface's other
// traffic, and drivers stop and start the queue for it; those of Intel send nothing by it unless a program
// is loaded.
//
// # Errors
//
// Listen tells what it tried, what was wrong, and what to do. What the system
// refuses later for a passing reason (a full queue, the interface down or gone)
// counts as sent and in SendDrops. An interface that went down and comes back, also
// under another name, works again, and so does one that was deleted and made again under
// its name and with its address, a tenth of a second later. If it has another address
// then, peers do not reach it: Recv and Send fail, and say so.
package ether
