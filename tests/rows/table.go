package main

import "fmt"

// row is a line of a table in docs/performance.md.
type row struct {
	name   string
	line   string // what ours is
	versus string // what it is compared to; "": nothing
	place  place
	loss   int  // of 100 packets, each way
	busy   bool // with a busy loop for each processor beside it
	quic   bool // it needs that program
	runs   measure
	format string // of a figure; "": whole numbers
}

const (
	plain = "--size 1048576"
	links = "--link --size 262144"
)

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
	{name: "small", line: "64-byte transactions, pipelined, UDP, millions a second", place: cable(1500), format: "%.1f", runs: alone("transactions_per_s", 1e-6, "--size 64")},
	{name: "ping", line: "one way of 64 bytes, us, default", versus: "Go UDP sockets", place: cable(1500), format: "%.1f", runs: pings("", sleeping)},
	{name: "ping-spin", line: "one way of 64 bytes, us, `--busy-poll`", versus: "plain sockets that spin", place: cable(1500), format: "%.2f", runs: pings("--busy-poll", spinning)},
	{name: "loss-1", line: "1 % of packets lost each way, MB/s", versus: "TCP under the same loss", place: cable(1500), loss: 1, runs: compared("tcp", plain, "")},
	{name: "loss-5", line: "5 % lost each way", versus: "TCP under the same loss", place: cable(1500), loss: 5, runs: compared("tcp", plain, "")},
	{name: "peers", line: "1024 peers of one endpoint, 64 KiB", versus: "one peer", place: cable(1500), runs: versus("mb_per_s", "--size 65536 --peers 1024", "", "--size 65536", "")},
	{name: "peers-64", line: "the same", versus: "one peer, and as much memory, 64 MiB", place: cable(1500), runs: versus("mb_per_s", "--size 65536 --peers 1024", "", "--size 65536 --depth 1024", "")},
	{name: "idle", line: "memory of an idle peer at the server, of 1000, KB", place: cable(1500), format: "%.1f", runs: alone("server_bytes_per_peer", 1e-3, "--size 1024 --peers 1000")},

	{name: "link", line: "64 buffers of 256 KiB, MB/s", versus: "bare transactions of 256 KiB", place: cable(1500), runs: versus("mb_per_s", links, "--link", "--size 262144", "")},
	{name: "link-stream", line: "the same through `io.Copy` at both ends", versus: "the same", place: cable(1500), runs: versus("mb_per_s", links+" --stream", "--link", "--size 262144", "")},
	{name: "link-alone", line: "the same with `help=off`", versus: "the same", place: cable(1500).with("help=off"), runs: versus("mb_per_s", links+" --stream", "--link", "--size 262144", "")},
	{name: "link-small", line: "64-byte messages, 1,024 buffers, millions a second", place: cable(1500), format: "%.1f", runs: alone("messages_per_s", 1e-6, "--link --size 64 --buffers 1024")},
	{name: "link-ping", line: "one way of 64 bytes, us, default", versus: "`ping`", place: cable(1500), format: "%.1f", runs: linkPings("")},
	{name: "link-ping-spin", line: "one way of 64 bytes, us, `--busy-poll`", versus: "`ping`", place: cable(1500), format: "%.1f", runs: linkPings("--busy-poll")},
	{name: "send", line: "`send` of 2 GiB in tmpfs to `listen -o /dev/null`, MB/s", versus: "read, and written to a TCP socket, by 256 KiB", place: cable(1500), runs: send(2 << 30)},
}

// markdown is the row as a line of its table.
func (r *row) markdown(s *series) string {
	format := r.format
	if format == "" {
		format = "%.0f"
	}
	ours, theirs, ratio := s.ours.in(format), "", ""
	if r.versus != "" {
		theirs = r.versus + ": " + s.theirs.in(format)
		ratio = fmt.Sprintf("%.2f", s.ours.median()/s.theirs.median())
	}
	switch {
	case s.busy && ratio != "":
		ratio += " " + doubt
	case s.busy:
		ours += " " + doubt
	}
	line := "|"
	for _, cell := range []string{"`" + r.name + "`", r.line, ours, theirs, ratio} {
		if cell != "" {
			line += " " + cell
		}
		line += " |"
	}
	return line
}
