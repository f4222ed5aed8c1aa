package main

import (
	"cmp"
	"fmt"
	"strings"
)

// row is a line of a table in docs/performance.md.
type row struct {
	name   string
	line   string // what ours is
	versus string // what it is compared to; "": nothing
	place  place
	loss   int  // of 100 packets, each way
	busy   bool // with a busy loop for each processor beside it
	quic   bool // it needs that program
	stream bool // programs of this row talk over TCP that are no bench's
	needs  program
	runs   measure
	format string // of a figure; "": whole numbers
}

const (
	plain = "--size 1048576"
	links = "--link --size 262144"
	// 64 MiB of memory are cycled at both ends, which no processor's cache holds.
	work    = "--size 1048576 --depth 64 --op "
	onLoop  = "on loopback"
	sameTCP = "Go TCP stream of the same 64 MiB of memory"
	marked  = "record marking over TCP"
)

// overTCP reports whether what is measured is over TCP, ours too, or is no bench's.
func (r *row) overTCP() bool { return r.place.tcp || r.stream }

// rows are all of them, in the order of the page.
var rows = []row{
	{name: "udp-tcp", line: "UDP, MTU 1500, offload, MB/s", versus: "Go TCP stream of the same 4 MiB of memory", place: cable(1500), runs: compared("tcp", plain, "")},
	{name: "udp-tls", line: "the same", versus: "Go TLS stream", place: cable(1500), runs: compared("tls", plain, "")},
	{name: "udp-quic", line: "the same", versus: "quic-go stream", place: cable(1500), quic: true, runs: besideQUIC},
	{name: "udp-raw", line: "the same", versus: "the kernel's sockets alone, with frames and batches as large", place: cable(1500), runs: compared("raw", plain, "")},
	{name: "udp-tcp-64", line: "the same, 64 MiB of memory", versus: "TCP", place: cable(1500), runs: compared("tcp", plain+" --depth 64", "")},
	{name: "udp-busy", line: "the same beside a busy loop for each core", versus: "TCP", place: cable(1500), busy: true, runs: compared("tcp", plain, "")},
	{name: "udp-9000", line: "UDP, MTU 9000", versus: "TCP", place: cable(9000), runs: compared("tcp", plain, "")},
	{name: "loopback", line: "UDP on loopback", versus: "TCP", runs: compared("tcp", plain, "")},
	{name: "loopback-busy", line: "the same beside a busy loop for each core", versus: "TCP", busy: true, runs: compared("tcp", plain, "")},
	{name: "udp-plain", line: "UDP, offload off", versus: "the kernel's sockets alone", place: cable(1500), runs: compared("raw", plain, "--gso off --gro off")},
	{name: "udp-sockbuf", line: "UDP, the kernel's default socket buffers", versus: "large ones", place: cable(1500), runs: versus("mb_per_s", plain, "--sockbuf default", plain, "")},
	{name: "ether-1500", line: "Ethernet, MTU 1500", versus: "the kernel's sockets alone, ring receive", place: etherCable(1500), runs: compared("raw", plain, "")},
	{name: "ether-9000", line: "Ethernet, MTU 9000", versus: "the kernel's sockets alone, ring receive", place: etherCable(9000), runs: compared("raw", plain, "")},
	{name: "fpga", line: "Ethernet 1500, 16 KiB, profile `fpga` (window 32)", versus: "native", place: etherCable(1500), runs: versus("mb_per_s", "--size 16384", "--profile fpga", "--size 16384", "")},
	{name: "opencpi", line: "Ethernet 1500, 16 KiB, profile `opencpi`", versus: "native", place: etherCable(1500), runs: versus("mb_per_s", "--size 16384", "--profile opencpi", "--size 16384", "")},
	{name: "sealed", line: "UDP, MTU 1500, offload, [sealed](operation.md#sealed-connections)", versus: "unsealed", place: cable(1500).bySeals(), runs: besideUnsealed(plain)},
	{name: "sealed-tls", line: "the same", versus: "Go TLS stream", place: cable(1500).bySeals(), runs: compared("tls", plain, "")},
	{name: "sealed-quic", line: "the same", versus: "quic-go stream", place: cable(1500).bySeals(), quic: true, runs: besideQUIC},
	{name: "sealed-ether", line: "Ethernet, MTU 1500, sealed", versus: "unsealed", place: etherCable(1500).bySeals(), runs: besideUnsealed(plain)},
	{name: "checked", line: "UDP, MTU 1500, offload, [checksums](operation.md#checksums)", versus: "none", place: cable(1500), runs: versus("mb_per_s", plain, "--frame-checksum on", plain, "")},
	{name: "checked-9000", line: "the same, MTU 9000", versus: "none", place: cable(9000), runs: versus("mb_per_s", plain, "--frame-checksum on", plain, "")},
	{name: "checked-ether", line: "Ethernet, MTU 1500, checksums", versus: "none", place: etherCable(1500), runs: versus("mb_per_s", plain, "--frame-checksum on", plain, "")},
	{name: "small", line: "64-byte transactions, pipelined, UDP, millions a second", place: cable(1500), format: "%.1f", runs: alone("transactions_per_s", 1e-6, "--size 64")},
	{name: "ping", line: "one way of 64 bytes, us, default", versus: "Go UDP sockets", place: cable(1500), format: "%.1f", runs: pings("", sleeping)},
	{name: "ping-spin", line: "one way of 64 bytes, us, `--busy-poll`", versus: "plain sockets that spin", place: cable(1500), format: "%.2f", runs: pings("--busy-poll", spinning)},
	{name: "loss-1", line: "1 % of packets lost each way, MB/s", versus: "TCP under the same loss", place: cable(1500), loss: 1, runs: compared("tcp", plain, "")},
	{name: "loss-1-spared", line: "the same", versus: "without loss", place: cable(1500), loss: 1, runs: besideNoLoss(plain)},
	{name: "loss-5", line: "5 % lost each way", versus: "TCP under the same loss", place: cable(1500), loss: 5, runs: compared("tcp", plain, "")},
	{name: "loss-5-spared", line: "the same", versus: "without loss", place: cable(1500), loss: 5, runs: besideNoLoss(plain)},
	{name: "peers", line: "1024 peers of one endpoint, 64 KiB", versus: "one peer", place: cable(1500), runs: versus("mb_per_s", "--size 65536 --peers 1024", "", "--size 65536", "")},
	{name: "peers-64", line: "the same", versus: "one peer, and as much memory, 64 MiB", place: cable(1500), runs: versus("mb_per_s", "--size 65536 --peers 1024", "", "--size 65536 --depth 1024", "")},
	{name: "idle", line: "memory of an idle peer at the server, of 1000, KB", place: cable(1500), format: "%.1f", runs: alone("server_bytes_per_peer", 1e-3, "--size 1024 --peers 1000")},

	{name: "udp-raw-64", line: "UDP, MTU 1500, offload, 64 MiB of memory, MB/s", versus: "the kernel's sockets alone, of the same memory", place: cable(1500), runs: compared("raw", plain+" --depth 64", "")},
	{name: "udp-9000-64", line: "UDP, MTU 9000, 64 MiB of memory", versus: "TCP of the same memory", place: cable(9000), runs: compared("tcp", plain+" --depth 64", "")},
	{name: "loopback-64", line: "UDP on loopback, 64 MiB of memory", versus: "TCP of the same memory", runs: compared("tcp", plain+" --depth 64", "")},
	{name: "udp-anywhere", line: "UDP, MTU 1500, offload, a client without `--local`", versus: "one with it", place: cable(1500), runs: anywhere(plain)},
	{name: "peers-10000", line: "10,000 peers of one endpoint, 4 KiB", versus: "1,024 peers, and as much outstanding", place: cable(1500), runs: versus("mb_per_s", "--size 4096 --peers 10000", "", "--size 4096 --peers 1024", "")},
	{name: "small-ether", line: "64-byte transactions, pipelined, Ethernet, millions a second", place: etherCable(1500), format: "%.1f", runs: alone("transactions_per_s", 1e-6, "--size 64")},
	{name: "ping-anywhere", line: "one way of 64 bytes, us, `--busy-poll`, a client without `--local`", versus: "one with it", place: cable(1500), format: "%.2f", runs: pingsAnywhere("--busy-poll")},
	{name: "ping-ether", line: "one way of 64 bytes, us, `--busy-poll`, Ethernet", versus: "packet sockets with a ring that spin", place: etherCable(1500), format: "%.2f", runs: besideRing},
	{name: "ether-calls", line: "Ethernet, MTU 1500, MB/s", versus: "with `xdp=off`", place: etherCable(1500), runs: besideCalls(plain, "")},
	{name: "fpga-calls", line: "Ethernet 1500, 16 KiB, profile `fpga`", versus: "native with `xdp=off`", place: etherCable(1500), runs: besideCalls("--size 16384", "--profile fpga")},

	{name: "verbs-write", line: "1 MiB Writes without CRC, MTU 1500, 64 MiB of memory, MB/s", versus: sameTCP, place: cable(1500).overTCP(), runs: compared("tcp", work+"write --no-crc", "")},
	{name: "verbs-write-crc", line: "the same with CRC", versus: sameTCP, place: cable(1500).overTCP(), runs: compared("tcp", work+"write", "")},
	{name: "verbs-loopback", line: "without CRC, " + onLoop, versus: sameTCP, place: place{}.overTCP(), runs: compared("tcp", work+"write --no-crc", "")},
	{name: "verbs-loopback-crc", line: "with CRC, " + onLoop, versus: sameTCP, place: place{}.overTCP(), runs: compared("tcp", work+"write", "")},
	{name: "verbs-read", line: "1 MiB Reads without CRC", versus: "Writes", place: cable(1500).overTCP(), runs: versus("mb_per_s", work+"read --no-crc", "", work+"write --no-crc", "")},
	{name: "verbs-send", line: "64 KiB Sends without CRC", versus: sameTCP, place: cable(1500).overTCP(), runs: compared("tcp", "--op send --no-crc --size 65536 --depth 1024", "")},
	{name: "verbs-strict", line: "1 MiB Writes without CRC, frames of one segment", versus: "frames of 64 KiB", place: cable(1500).overTCP(), runs: versus("mb_per_s", work+"write --no-crc --strict", "", work+"write --no-crc", "")},
	{name: "verbs-pairs", line: "64 KiB Writes without CRC on 1,000 queue pairs", versus: "one queue pair, and as much memory", place: cable(1500).overTCP(), runs: versus("mb_per_s", "--op write --no-crc --size 65536 --peers 1000 --depth 1", "", "--op write --no-crc --size 65536 --depth 1000", "")},
	{name: "verbs-pairs-tcp", line: "the same", versus: "1,000 Go TCP streams of as much memory", place: cable(1500).overTCP(), runs: besideStreams("--op write --no-crc --size 65536 --peers 1000 --depth 1")},
	{name: "tcp-streams", line: "64 KiB writes to 1,000 Go TCP streams", versus: "to one, of as much memory", place: cable(1500).overTCP(), runs: manyStreams},
	{name: "verbs-small", line: "64-byte Sends, pipelined, millions a second", place: cable(1500).overTCP(), format: "%.1f", runs: alone("operations_per_s", 1e-6, "--op send --no-crc --size 64")},
	{name: "verbs-ping", line: "one way of 64 bytes by Sends, us", versus: "Go TCP stream", place: cable(1500).overTCP(), format: "%.1f", runs: besideTCPPings},
	{name: "verbs-libfabric", line: "one way of 64 bytes by Sends, us", versus: "libfabric, provider tcp, which spins", place: cable(1500).overTCP(), needs: fiPingpong, format: "%.1f", runs: besideLibfabric},
	{name: "verbs-ucx", line: "1 MiB Writes without CRC, MB/s", versus: "UCX puts over TCP, which spin", place: cable(1500).overTCP(), needs: ucxPerf, runs: besideUCX(work + "write --no-crc")},
	{name: "verbs-ucx-ping", line: "one way of 64 bytes by Sends, us", versus: "UCX messages over TCP, which spin", place: cable(1500).overTCP(), needs: ucxPerf, format: "%.1f", runs: besideUCXPings},

	{name: "rpc-null-1", line: "NULL over RDMA, one at a time, us", versus: marked, stream: true, format: "%.1f", runs: callsOf(doNull, 1, overRDMA, overTCP, microseconds)},
	{name: "rpc-null-16", line: "16 at once, thousands a second", versus: marked, stream: true, runs: callsOf(doNull, 16, overRDMA, overTCP, thousands)},
	{name: "rpc-null-64", line: "64 at once, thousands a second", versus: marked, stream: true, runs: callsOf(doNull, 64, overRDMA, overTCP, thousands)},
	{name: "rpc-read-1", line: "results of 1 MiB without CRC, one at a time, MB/s", versus: marked, stream: true, runs: callsOf(doRead, 1, overRDMA, overTCP, megabytes)},
	{name: "rpc-read-16", line: "the same, 16 at once", versus: marked, stream: true, runs: callsOf(doRead, 16, overRDMA, overTCP, megabytes)},
	{name: "rpc-read-crc", line: "the same with CRC", versus: marked, stream: true, runs: callsOf(doRead, 16, withCRC, overTCP, megabytes)},
	{name: "rpc-read-writes", line: "the same without CRC", versus: "verbs' own Writes of the same memory, 16 at once", stream: true, runs: callsOf(doRead, 16, overRDMA, byWrites, megabytes)},
	{name: "rpc-write-16", line: "arguments of 1 MiB without CRC, 16 at once", versus: marked, stream: true, runs: callsOf(doWrite, 16, overRDMA, overTCP, megabytes)},
	{name: "nfs-read-1", line: "READ of 1 MiB from memory, one at a time", versus: marked, stream: true, runs: callsOf(doNFSRead, 1, overRDMA, overTCP, megabytes)},
	{name: "nfs-read-16", line: "the same, 16 at once", versus: marked, stream: true, runs: callsOf(doNFSRead, 16, overRDMA, overTCP, megabytes)},
	{name: "nfs-write-16", line: "WRITE of 1 MiB into memory, 16 at once", versus: marked, stream: true, runs: callsOf(doNFSWrite, 16, overRDMA, overTCP, megabytes)},

	{name: "link", line: "64 buffers of 256 KiB, MB/s", versus: "bare transactions of 256 KiB", place: cable(1500), runs: versus("mb_per_s", links, "--link", "--size 262144", "")},
	{name: "link-stream", line: "the same through `io.Copy` at both ends", versus: "the same", place: cable(1500), runs: versus("mb_per_s", links+" --stream", "--link", "--size 262144", "")},
	{name: "link-alone", line: "the same with `help=off`", versus: "the same", place: cable(1500).with("help=off"), runs: versus("mb_per_s", links+" --stream", "--link", "--size 262144", "")},
	{name: "link-small", line: "64-byte messages, 1,024 buffers, millions a second", place: cable(1500), format: "%.1f", runs: alone("messages_per_s", 1e-6, "--link --size 64 --buffers 1024")},
	{name: "link-ping", line: "one way of 64 bytes, us, default", versus: "`ping`", place: cable(1500), format: "%.1f", runs: linkPings("")},
	{name: "link-ping-spin", line: "one way of 64 bytes, us, `--busy-poll`", versus: "`ping`", place: cable(1500), format: "%.1f", runs: linkPings("--busy-poll")},
	{name: "send", line: "`send` of 2 GiB in tmpfs to `listen -o /dev/null`, MB/s", versus: "read, and written to a TCP socket, by 256 KiB", place: cable(1500), stream: true, runs: send(2 << 30)},
}

// controllers says by which congestion controllers theirs was measured, and what it does by the machine's default.
func (s *series) controllers(format string) (said string) {
	if len(s.by) > 0 {
		said = " by " + strings.Join(s.by, " or ")
	}
	if len(s.byDefault) > 0 {
		said += fmt.Sprintf("; by %s, the machine's default, "+format, s.byItself, s.byDefault.median())
	}
	return said
}

// per is the median of processor times; "": they were not measured.
func (f figures) per() string {
	if len(f) == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", f.median())
}

// markdown is the row as a line of its table.
func (r *row) markdown(s *series) string {
	format := r.format
	if format == "" {
		format = "%.0f"
	}
	ours, theirs, ratio := s.ours.in(format), "", ""
	if r.versus != "" {
		theirs = r.versus + ": " + s.theirs.in(format) + s.controllers(format)
		ratio = fmt.Sprintf("%.2f", s.ours.median()/s.theirs.median())
	}
	switch {
	case s.busy && ratio != "":
		ratio += " " + doubt
	case s.busy:
		ours += " " + doubt
	}
	line := "|"
	cpu := s.oursCPU.per()
	if r.versus != "" && cpu != "" {
		cpu += " / " + cmp.Or(s.theirsCPU.per(), "?")
	}
	load := fmt.Sprintf("%.1f, %.1f", s.load[0], s.load[1])
	for _, cell := range []string{"`" + r.name + "`", r.line, ours, theirs, ratio, cpu, load} {
		if cell != "" {
			line += " " + cell
		}
		line += " |"
	}
	return line
}
