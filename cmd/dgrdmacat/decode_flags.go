package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/settings"
)

// decodeOptions are the flags of decode.
type decodeOptions struct {
	iface, bpf                           string
	write                                string // "": no file
	print, force                         bool
	fields, bytes, json, absolute, stats bool
	count                                int
	captureOptions
	filter text.Filter
}

func (o *decodeOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.iface, "i", "", "decode what this network `interface` sends and receives; any is all of them")
	fs.StringVar(&o.bpf, "bpf", "", "with -i, only packets that the BPF program in this `file` takes, as tcpdump -ddd prints one")
	fs.Func("w", "write packets to this `FILE`, as pcapng, and show no frames; - is standard output", func(s string) error {
		o.write = s
		if s == "" {
			return errors.New("the name of a file is empty; - is standard output")
		}
		return nil
	})
	fs.BoolVar(&o.print, "print", false, "with -w, show frames as well")
	fs.BoolVar(&o.force, "force", false, "with -w, overwrite the file")
	fs.BoolVar(&o.fields, "v", false, "show every field, in several lines for each frame")
	fs.BoolVar(&o.bytes, "x", false, "show every field and all data, of a message of RPC-over-RDMA its Send; also with --json")
	fs.BoolVar(&o.json, "json", false, "print one JSON object for each frame")
	fs.BoolVar(&o.absolute, "absolute", false, "print dates, in UTC")
	fs.BoolVar(&o.stats, "stats", false, "print a summary to standard error at the end, as is always done with -i, and where nothing is shown")
	fs.IntVar(&o.count, "count", 0, "end after that many frames; 0: show all")
	o.captureOptions.register(fs)
	f := &o.filter
	fs.Func("id", "only frames from or to these endpoint `ids`", eachOf(func(s string) error {
		n, err := strconv.ParseUint(s, 0, 16)
		f.IDs = append(f.IDs, frame.EndpointID(n))
		return needBits(s, 16, err)
	}))
	registerAddr(fs, &f.Ends)
	fs.Func("txn", "only frames with messages of these `transactions`", eachOf(func(s string) error {
		n, err := strconv.ParseUint(s, 0, 32)
		f.Txns = append(f.Txns, uint32(n))
		return needBits(s, 32, err)
	}))
	fs.Func("range", "only frames that write to these `ranges`, data or completion word: ADDR, FIRST-LAST or FIRST+LENGTH", eachOf(func(s string) error {
		r, err := text.ParseRange(s)
		f.Ranges = append(f.Ranges, r)
		return err
	}))
	names := slices.Sorted(maps.Keys(operations))
	fs.Var(&someOf{names, func(s string) error {
		ops, ok := operations[s]
		f.Operations = append(f.Operations, ops...)
		if !ok {
			return fmt.Errorf("%q is no operation: need some of %s", s, strings.Join(names, ", "))
		}
		return nil
	}}, "op", "only frames of iWARP with these `operations`, a list: "+strings.Join(names, ", ")+"; atomic is fetchadd and cmpswap, and rpc is messages of RPC-over-RDMA")
	fs.Func("stag", "only frames of iWARP that name these `STags`, as lines show them, 0x5bae4b00, or decimal as in --json", eachOf(func(s string) error {
		n, err := strconv.ParseUint(s, 0, 32)
		f.STags = append(f.STags, uint32(n))
		return needBits(s, 32, err)
	}))
	fs.Func("xid", "only messages of RPC-over-RDMA with these `XIDs`, as lines show them, 0x614e9044, or decimal", eachOf(func(s string) error {
		n, err := strconv.ParseUint(s, 0, 32)
		f.XIDs = append(f.XIDs, uint32(n))
		return needBits(s, 32, err)
	}))
}

// registerAddr has --addr choose by either end.
func registerAddr(fs *flag.FlagSet, ends *[]capture.End) {
	fs.Func("addr", "only frames from or to these `addresses`: IP, IP:PORT, [IPv6]:PORT or MAC", eachOf(func(s string) error {
		e, err := capture.ParseEnd(s)
		*ends = append(*ends, e)
		return err
	}))
}

// operations are what --op knows.
var operations = map[string][]text.Operation{
	"write":       {{Opcode: rdmap.Write}},
	"read":        {{Opcode: rdmap.ReadRequest}, {Opcode: rdmap.ReadResponse}},
	"send":        {{Opcode: rdmap.Send}, {Opcode: rdmap.SendSE}, {Opcode: rdmap.SendInvalidate}, {Opcode: rdmap.SendSEInvalidate}},
	"terminate":   {{Opcode: rdmap.Terminate}},
	"immediate":   {{Opcode: rdmap.Immediate}, {Opcode: rdmap.ImmediateSE}},
	"atomic":      {{Opcode: rdmap.AtomicRequest}, {Opcode: rdmap.AtomicResponse}},
	"fetchadd":    {{Opcode: rdmap.AtomicRequest, Atomic: "FetchAdd"}, {Opcode: rdmap.AtomicResponse, Atomic: "FetchAdd"}},
	"cmpswap":     {{Opcode: rdmap.AtomicRequest, Atomic: "CmpSwap"}, {Opcode: rdmap.AtomicResponse, Atomic: "CmpSwap"}},
	"flush":       {{Opcode: rdmap.FlushRequest}, {Opcode: rdmap.FlushResponse}},
	"verify":      {{Opcode: rdmap.VerifyRequest}, {Opcode: rdmap.VerifyResponse}},
	"rpc":         {{RPC: true}},
	"atomicwrite": {{Opcode: rdmap.AtomicWriteRequest}, {Opcode: rdmap.AtomicWriteReply}},
}

// eachOf splits the value of a flag at its commas.
func eachOf(add func(string) error) func(string) error {
	return func(s string) error {
		for part := range strings.SplitSeq(s, ",") {
			if err := add(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// needBits explains why a number was refused.
func needBits(s string, bits int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is no number of %d bits", s, bits)
}

// captureOptions say what in a capture is DG/RDMA, and what is iWARP.
type captureOptions struct {
	frames captured.Options
	iwarp  iwarp.Options
	bare   []string // numbers of --port without a protocol
}

func (o *captureOptions) register(fs *flag.FlagSet) {
	fs.Func("port", "`ports` of DG/RDMA over UDP, PORT or udp:PORT, which do not limit iWARP; without them, what looks like a frame is taken. tcp:PORT is one of iWARP, and where only such are named, DG/RDMA is left out; without it, files are searched for connections that begin with its set-up", eachOf(func(s string) error {
		protocol, number, named := strings.Cut(s, ":")
		if !named {
			protocol, number = "udp", s
			o.bare = append(o.bare, s)
		}
		n, err := strconv.ParseUint(number, 10, 16)
		switch {
		case err != nil || n == 0:
		case protocol == "tcp":
			o.iwarp.Ports = append(o.iwarp.Ports, uint16(n))
			return nil
		case protocol == "udp":
			o.frames.Ports = append(o.frames.Ports, uint16(n))
			return nil
		}
		return fmt.Errorf("%q is no port: need 1 to 65535, as in 4791, udp:4791 or tcp:7174", s)
	}))
	fs.Func("ethertype", "EtherType of DG/RDMA, a `number` (default "+settings.EtherType.Otherwise()+")", func(s string) error {
		v, err := settings.EtherType.Parse(s)
		if err != nil {
			return fmt.Errorf("%q is no EtherType: %w", s, err)
		}
		o.frames.EtherType = uint16(v.Number)
		return nil
	})
}

// narrow leaves DG/RDMA out where only ports of iWARP are named.
func (o *captureOptions) narrow() {
	o.frames.None = len(o.iwarp.Ports) > 0 && len(o.frames.Ports) == 0 && o.frames.EtherType == 0
}

func (o *decodeOptions) check(files []string) error {
	if !o.filter.OfDGRDMA() {
		o.narrow()
	}
	switch {
	case o.iface == "" && len(files) == 0:
		return badUsage("decode what? Name files, - for standard input, or an interface with -i")
	case o.iface != "" && len(files) > 0:
		return badUsage("-i %s and files: give one of them", o.iface)
	case o.count < 0:
		return badUsage("--count %d: need 0 or more", o.count)
	case o.bpf != "" && o.iface == "":
		return badUsage("--bpf is for what is captured now: name an interface with -i")
	case o.bpf != "" && o.iface == capture.Any:
		return badUsage("--bpf is a program for one kind of interface: name one with -i, in place of %s", capture.Any)
	case o.filter.OfDGRDMA() && o.filter.OfIWARP():
		return badUsage("%s is of DG/RDMA and %s of iWARP: nothing is of both; give filters of one of them", o.ofDGRDMA(), o.ofIWARP())
	case o.iface != "" && o.filter.OfIWARP() && len(o.iwarp.Ports) == 0:
		return badUsage("--op, --stag and --xid are of iWARP, of which only ports that are named are captured: add --port tcp:PORT")
	case o.write == "" && (o.print || o.force):
		return badUsage("--print and --force need -w FILE")
	case o.write == "-" && o.print:
		return badUsage("-w - and --print: both would go to standard output")
	case !o.shows() && (o.fields || o.bytes || o.json || o.absolute):
		return badUsage("-v, -x, --json and --absolute say how frames are shown, which they are not with -w: add --print")
	}
	return nil
}

// ofDGRDMA names one of the filters that only frames of DG/RDMA fit, if any is given.
func (o *decodeOptions) ofDGRDMA() string {
	switch {
	case len(o.filter.IDs) > 0:
		return "--id"
	case len(o.filter.Txns) > 0:
		return "--txn"
	}
	return "--range"
}

// ofIWARP names one of the filters that only frames of iWARP fit, if any is given.
func (o *decodeOptions) ofIWARP() string {
	switch {
	case len(o.filter.Operations) > 0:
		return "--op"
	case len(o.filter.STags) > 0:
		return "--stag"
	}
	return "--xid"
}

// explain says why nothing is shown where the filters are of one protocol, and all frames of the other, where no frame was at the ports that
// were named, or where a live capture left TCP out; and of how much a snap length hides what it is.
func (o *decodeOptions) explain(w io.Writer, c *decodeCounts) {
	if c.unsure > 0 && !o.filter.OfDGRDMA() {
		fmt.Fprintf(w, "the snap length hides whether there is iWARP in %s of TCP: capture whole packets (tcpdump -s 0)\n", count(c.unsure, "record"))
	}
	switch {
	case c.shown > 0:
	case c.live && len(o.iwarp.Ports) == 0 && !o.filter.OfDGRDMA():
		fmt.Fprintln(w, "TCP is captured only with --port tcp:PORT")
	case c.Packets == 0 && c.Other > c.unsure && o.ports() != "":
		fmt.Fprintf(w, "none at the ports named by --port: %s\n", o.ports())
	case c.Packets == 0:
	case o.filter.OfDGRDMA() && c.Packets == c.fpdus:
		fmt.Fprintf(w, "%s is of DG/RDMA, and all frames are of iWARP\n", o.ofDGRDMA())
	case o.filter.OfMessages() && c.sealed > 0:
		fmt.Fprintf(w, "sealed frames: %d, which no --txn or --range fits: what they write cannot be seen\n", c.sealed)
	case o.filter.OfIWARP() && c.fpdus == 0:
		fmt.Fprintf(w, "%s is of iWARP, and all frames are of DG/RDMA\n", o.ofIWARP())
	}
}

// forewarn says what a live capture leaves out, where a user who has named a port may mean it.
func (o *decodeOptions) forewarn(w io.Writer) {
	if len(o.bare) > 0 && len(o.iwarp.Ports) == 0 && !o.filter.OfDGRDMA() {
		fmt.Fprintf(w, "--port %s is of UDP: iWARP, and NFS over RDMA, need --port tcp:%s\n", o.bare[0], o.bare[0])
	}
}

// ports lists those that were named, as --port takes them, of the protocols that the filters leave.
func (o *decodeOptions) ports() string {
	var all []string
	if !o.filter.OfIWARP() {
		for _, p := range o.frames.Ports {
			all = append(all, fmt.Sprint("udp:", p))
		}
	}
	if !o.filter.OfDGRDMA() {
		for _, p := range o.iwarp.Ports {
			all = append(all, fmt.Sprint("tcp:", p))
		}
	}
	return strings.Join(all, ", ")
}

// shows reports whether frames are shown.
func (o *decodeOptions) shows() bool { return o.write == "" || o.print }

// liveFilter is what the kernel can choose by while it captures; the decoder does the rest.
func (o *decodeOptions) liveFilter(ctx context.Context, stdin io.Reader) (capture.Filter, error) {
	f := o.frames.Filter()
	f.Ends, f.TCP = o.filter.Ends, o.iwarp.Ports
	if o.bpf == "" {
		return f, nil
	}
	in, err := openInput(ctx, o.bpf, stdin)
	if err != nil {
		return f, plainError(o.bpf, err)
	}
	defer in.Close()
	if f.Program, err = capture.ParseProgram(in); err != nil {
		return f, fmt.Errorf("%s is no program as tcpdump -ddd prints it: %w", nameOf(o.bpf), err)
	}
	return f, nil
}

// decodeCounts is the summary.
type decodeCounts struct {
	capture.Stats
	fpdus            int // frames of iWARP, among Packets
	shown, malformed int
	sealed           int    // frames
	unsure           int    // records of TCP of which the snap length hides whether they are iWARP, among Other
	verb             string // what was done with those shown
	live             bool
	dropped          int
}

func (c *decodeCounts) add(s capture.Stats, streams iwarp.Stats) {
	c.Records += s.Records
	c.Packets += s.Packets
	c.Cut += s.Cut
	c.Joined += s.Joined
	c.Hidden += s.Hidden
	c.Fragments += s.Fragments
	c.UnknownLink += s.UnknownLink
	c.unsure += streams.Unsure
	c.Other += max(0, s.Other-streams.Segments) // who ends amid a record has counted its segment alone
}

func (c *decodeCounts) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d of them skipped", count(c.Records, "record"), c.Other+c.Fragments+c.UnknownLink)
	mention(w, " (", ")", alike(c.Other-c.unsure, "neither DG/RDMA nor iWARP"), alike(c.unsure, "of TCP, cut before what would show iWARP"), plural(c.Fragments, "later fragment", ""), alike(c.UnknownLink, "of unknown link types"))
	fmt.Fprintf(w, "; %s, %d %s, %d malformed, %d cut", count(c.Packets, "frame"), c.shown, c.verb, c.malformed, c.Cut)
	mention(w, "; ", "", plural(c.Joined, "record", " of several datagrams"), plural(c.Hidden, "frame", " behind the snap length"))
	switch {
	case c.live:
		fmt.Fprintf(w, "; %d dropped by the kernel", c.dropped)
	case c.dropped > 0:
		fmt.Fprintf(w, "; %d dropped when they were captured", c.dropped)
	}
	fmt.Fprintln(w)
}

// counted is a number with what it counts, which is printed unless it is 0.
type counted struct {
	n    int
	text string
}

func alike(n int, what string) counted { return counted{n, fmt.Sprint(n, " ", what)} }

func plural(n int, one, of string) counted { return counted{n, count(n, one) + of} }

func mention(w io.Writer, before, after string, all ...counted) {
	between := before
	for _, c := range all {
		if c.n > 0 {
			fmt.Fprint(w, between, c.text)
			between = ", "
		}
	}
	if between != before {
		fmt.Fprint(w, after)
	}
}
