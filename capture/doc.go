// Package capture reads captures, files and what passes through interfaces, finds the
// packets of a protocol in them, and writes files. It knows capture files, link layers and
// what offload makes of datagrams, and no protocol: that is for a [Recogniser].
//
//	file, err := capture.NewFile(in) // or capture.OpenLive, with a Filter for the kernel
//	if err != nil {
//		return err
//	}
//	r := capture.NewReader(file, protocol)
//	for {
//		p, err := r.Next()
//		if err == io.EOF {
//			return nil
//		}
//		if err != nil {
//			return err // an *Error: at which record the file is damaged
//		}
//		fmt.Println(p.Time, p.Src, p.Dst, p.Data)
//	}
//
// Files are pcap or pcapng, compressed by gzip or not. Link layers are Ethernet, VLAN
// tags, both Linux cooked formats, BSD loopback and raw IP; then IPv4 with options,
// IPv6 with extension headers, and UDP. [Record.Segment] reads TCP, and [Record.Notice] what ICMP and
// ARP say. Records from elsewhere come by a [Source] of the
// program's own. A [Writer] makes pcapng of records.
//
// # Offload
//
// A host with segmentation or receive offload captures many datagrams of UDP as
// one. The recogniser says how long each was, and they are delivered as if each had
// come alone, with the time of all: [Packet.Segment]. The checksum and the lengths in
// the headers before them are those of the whole, and not on any wire.
//
// # Why it has readers of its own
//
// gopacket has readers of both formats, pcapgo. On files of 100 MB with 66,000 and with
// 1,000,000 records they are about as fast (0.5 to 1.4 times our time) and take as little
// memory. They do not say where a file is damaged, and of pcapng not even that it is: one
// that is cut anywhere is taken for whole, and a wrong length in a block is believed and
// what follows misread. They know no link type above 255, and allocate whatever length a
// record claims. The readers here say what is wrong and where, which is worth 400 lines.
// TestPcapgoMisreads and BenchmarkFile hold this against the version in use. Nor does this
// package use gopacket's layers: they refuse the length 0 that offload leaves in IPv6
// headers.
//
// # Rules
//
// Buffers: a Packet and its Data are valid until the next call of Next. Memory does
// not grow with the capture. Concurrency: a Reader and its Source belong to one
// goroutine at a time. Errors: a damaged file is read as far as it goes, then Next
// returns an *[Error] and goes on returning it.
//
// Limits: records of up to 256 KiB, as in libpcap. IP fragments are not put
// together: a first fragment is a cut packet, later ones are only counted. A
// cooked capture does not record the destination of an Ethernet frame.
package capture
