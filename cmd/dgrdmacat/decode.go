package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	"github.com/dgrdma/dgrdma/inspect/text"
)

var decodeCommand = command{
	name: "decode", summary: "show the frames in captures, or on an interface",
	args: "FILE...|-|-i INTERFACE", elsewhere: ofTcpdump,
	about: `Shows every frame of DG/RDMA and of iWARP, RDMA over TCP, in captures, pcap or pcapng,
compressed by gzip or not; - is standard input. With -i, those that an interface sends
and receives, until interrupted.

  dgrdmacat decode trace.pcap
  ssh host tcpdump -U -w - | dgrdmacat decode -
  dgrdmacat decode --json trace.pcap | jq 'select(.kind == "write")'
  dgrdmacat decode -i eth0 -v --txn 17

A line reads: number of the record, seconds since the first packet, who to whom;
endpoint ids, frame id, acknowledged ids (first+count); then for each message its
transaction, its place in that, what it writes where, and the completion word. The
handshake of a session tells the epochs of both sides, and the services that share a
memory. What the capturing host joined into one packet is taken apart: 12.3 is the third
datagram of record 12. Frames that are cut or malformed are shown, and say so.

Of a sealed frame a line has its counter, from 0, under which of the receiver's keys it is, and
how long it is; what it carries nobody can read. Handshakes for keys have four steps, a question,
a challenge, a first and a second message, with one nonce; a challenge of who does not know the
key answers a sealed frame.

On Ethernet the EtherType tells a frame. UDP has no fixed port: what looks like a
frame is taken, or, with --port PORT or udp:PORT, everything from and to these ports of UDP.

iWARP: a line reads number of the record, or of the first and the last one with a part of the
frame, seconds, who to whom, and what is sent: the request or reply of MPA that sets up a
connection, or operation, place, length and CRC of a segment. Connections are those that begin
with such a request, or that have a port of --port tcp:PORT, which by itself leaves DG/RDMA out;
a bare number is of UDP, and does not limit iWARP. A live capture takes TCP only if such a port is named. Where bytes are missing,
a line says so; the next frame is found by its CRC, and without CRC the direction is given up.

  dgrdmacat decode -i eth0 --port tcp:7471
  dgrdmacat decode --op read,terminate trace.pcap

RPC-over-RDMA, as NFS uses it on iWARP: after the frame that ends a message a line has version, XID,
program and procedure, credits, chunks, and of a Reply its status, which Call it answers, and
what RDMA Writes and Reads moved for it. --op rpc shows these lines alone, and --xid those of
some Calls. With -v and --json, a Call has its user and its arguments, and a Reply its results:
names, handles, offsets, counts, verifiers, attributes; of NFS 3, MOUNT 3 and NFSACL. What came
in chunks is with the Reply. -x adds the bytes of the Send, and of a whole Call or Reply that
chunks moved; the file data that they moved are at the frames: -x --op write,read.

  dgrdmacat decode --op rpc trace.pcap
  dgrdmacat decode -v --xid 0x614e9044 trace.pcap

Filters take lists, as in --txn 17,18, and can be repeated; a frame must fit all
filters that are given, and fits each by any of its values. --id, --txn and --range are of
DG/RDMA, --op, --stag and --xid of iWARP: those of one do not go with those of the other.

With -i any, the packets of all interfaces are taken, also of those that come later: once
for each that they pass, with its name. The kernel drops what cannot be DG/RDMA, or does
not fit --port and --addr, before it costs much. Expressions of tcpdump need libpcap, which
this program does without; it takes what tcpdump makes of one:

  dgrdmacat decode -i eth0 --bpf <(tcpdump -i eth0 -ddd vlan 5)

With -w, packets of the frames that pass the filters are written to a file, pcapng with the
names of interfaces, and not shown; of iWARP, whole connections that fit --addr, with what TCP
says. Their first packets are written when they are known for such: where others passed
meanwhile, behind those. It is whole however this ends, also when the disk is full; on one
with no room even for its header none is left.

  dgrdmacat decode -i any --port 7100 -w trace.pcapng
  dgrdmacat decode -i eth0 -w - | tshark -r -`,
	flags: func(fs *flag.FlagSet) action {
		o := new(decodeOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			return newDecoder(o, std).run(ctx, args)
		}
	},
}

// decoder shows frames, or writes their packets to a file.
type decoder struct {
	o       *decodeOptions
	std     *stdio
	from    *looked
	printer text.Printer
	view    text.View
	lines   gathered
	kept    keptFile
	counts  decodeCounts
	rpc     *rpcrdma.Decoder
	dropped func() int // by the kernel, since a live capture began
}

func newDecoder(o *decodeOptions, std *stdio) *decoder {
	d := &decoder{o: o, std: std, printer: text.Printer{Bytes: o.bytes, Absolute: o.absolute}, lines: gathered{to: std.out}}
	if d.counts.verb = "shown"; !o.shows() {
		d.counts.verb = "written"
	}
	switch {
	case o.json:
		d.printer.Style = text.JSON
	case o.fields || o.bytes:
		d.printer.Style = text.Fields
	}
	return d
}

// errEnough ends decoding early, without anything being wrong.
var errEnough = errors.New("enough")

func (d *decoder) run(ctx context.Context, files []string) error {
	if err := d.o.checkFile(files, d.std); err != nil {
		return err
	}
	var failed []error
	if d.o.iface == "" {
		failed = d.files(ctx, files)
	} else {
		live, err := d.openLive(ctx)
		if err != nil {
			return err
		}
		defer live.Close()
		failed = append(failed, d.live(ctx, live))
	}
	failed = append(failed, d.flush(), d.lines.broken, d.kept.end())
	if !d.o.shows() {
		d.counts.shown -= d.kept.unwritten
	}
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil || errors.Is(err, errEnough) })
	if slices.ContainsFunc(failed, d.std.isClosedPipe) {
		return errors.Join(slices.DeleteFunc(failed, d.std.isClosedPipe)...)
	}
	// An empty answer says why it is empty.
	if d.o.stats || d.o.iface != "" || len(failed) == 0 && d.counts.shown == 0 {
		d.counts.print(d.std.err)
	}
	if len(failed) == 0 {
		d.o.explain(d.std.err, &d.counts)
	}
	return errors.Join(failed...)
}

func (d *decoder) openLive(ctx context.Context) (*capture.Live, error) {
	filter, err := d.o.liveFilter(ctx, d.std.in)
	if err != nil {
		return nil, err
	}
	return capture.OpenLive(ctx, d.o.iface, filter, d.flush)
}

// live shows what an interface sends and receives.
func (d *decoder) live(ctx context.Context, live *capture.Live) error {
	if err := d.begin(live); err != nil {
		return err
	}
	d.o.forewarn(d.std.err)
	fmt.Fprintf(d.std.err, "capturing on %s\n", text.Plain(d.o.iface))
	d.dropped = live.Dropped
	d.printer.Interfaces = d.o.iface == capture.Any
	// It ends by itself at ^C, which is how a capture ends, behind what was written.
	err := d.frames(context.WithoutCancel(ctx), live)
	d.counts.live, d.counts.dropped = true, live.Dropped()
	d.kept.drops(d.counts.dropped, d.from.record.Time)
	return err
}

func (d *decoder) files(ctx context.Context, names []string) (failed []error) {
	for _, name := range names {
		if len(names) > 1 {
			d.printer.File = name
		}
		err := d.file(ctx, name)
		failed = append(failed, err)
		if errors.Is(err, errEnough) || ctx.Err() != nil {
			break
		}
	}
	return failed
}

// file shows one file as far as it goes.
func (d *decoder) file(ctx context.Context, name string) error {
	in, err := openInput(ctx, name, d.std.in)
	switch {
	case name == "":
		return err
	case err != nil:
		return plainError(name, err)
	}
	defer in.Close()
	d.printer.Interfaces = false
	f, err := capture.NewFile(&eager{in, d.flush})
	if err == nil {
		err = d.frames(ctx, f)
		d.counts.dropped += f.Dropped()
		if begun := d.begin(f); begun != nil {
			return begun
		}
		d.kept.drops(d.counts.dropped, d.from.record.Time)
	}
	switch {
	case err == nil, errors.Is(err, errEnough):
		return err
	case !errors.Is(err, errInterrupted):
		return captureError(name, err, "what is before it was shown")
	case name == "-":
		return nil // as long as it lasts
	}
	return fmt.Errorf("%s: %w", name, errInterrupted)
}

// eager is a reader that lets out what was gathered before it may have to wait.
type eager struct {
	io.Reader
	quiet func() error
}

func (e *eager) Read(b []byte) (int, error) {
	if err := e.quiet(); err != nil {
		return 0, err
	}
	return e.Reader.Read(b)
}

// frameSource yields records, and knows the interfaces that they are of.
type frameSource interface {
	capture.Source
	Interfaces() []capture.Interface
}

// looked is a source whose last record can be looked at.
type looked struct {
	frameSource
	begins  func(time.Time) // is told when the capture begins, unless that is not known
	begun   bool
	record  capture.Record
	written int // the place of the record that was written last
}

func (k *looked) Next() (_ capture.Record, err error) {
	k.record, err = k.frameSource.Next()
	if !k.begun && !k.record.Time.IsZero() {
		k.begun = true
		k.begins(k.record.Time)
	}
	return k.record, err
}

// frames shows what there is in a source.
func (d *decoder) frames(ctx context.Context, from frameSource) error {
	d.from = &looked{frameSource: from, begins: func(t time.Time) {
		if d.printer.Start.IsZero() { // else the file before has told
			d.printer.Start = t
		}
	}}
	o := d.o.iwarp
	if d.o.write != "" {
		o.Passed = d.passed
	}
	d.rpc = rpcrdma.New()
	streams := iwarp.New(o, d.showEvent)
	r := captured.NewReader(&iwarp.Tap{Source: d.from, Decoder: streams}, d.o.frames)
	defer func() { d.counts.add(r.Stats(), streams.Stats()) }()
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return errInterrupted
		}
		p, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = d.show(p)
		}
		if err != nil {
			return err
		}
	}
}

// writeAt is how much is gathered before it is written.
const writeAt = 64 << 10

func (d *decoder) show(p *captured.Packet) error {
	d.view.Decode(p)
	if d.view.Malformed != nil {
		d.counts.malformed++
	}
	if d.view.Kind == text.Sealed {
		d.counts.sealed++
	}
	if !d.o.filter.Match(&d.view) {
		return nil
	}
	d.counts.shown++
	if d.o.shows() {
		// Where there are several, a line says which one.
		d.printer.Interfaces = d.printer.Interfaces || len(d.from.Interfaces()) > 1
		d.lines.buf = d.printer.Append(d.lines.buf, &d.view)
	}
	if d.o.write != "" {
		d.kept.unwritten++
		if d.from.written != p.Record {
			d.from.written = p.Record
			if err := d.keep(&d.from.record); err != nil {
				return err
			}
		}
	}
	return d.shown()
}

// shown counts on behind a frame.
func (d *decoder) shown() error {
	if d.counts.shown == d.o.count {
		return errEnough
	}
	return d.flushMuch()
}

func (d *decoder) flushMuch() error {
	if max(len(d.lines.buf), len(d.kept.buf)) >= writeAt {
		return d.flush()
	}
	return nil
}

// keep writes a record.
func (d *decoder) keep(r *capture.Record) error {
	if err := d.begin(d.from); err != nil {
		return err
	}
	d.kept.add(r)
	return nil
}

// begin begins the file, if there is to be one and is none.
func (d *decoder) begin(from frameSource) error {
	if d.o.write == "" || d.kept.to != nil {
		return nil
	}
	to, err := d.o.openFile(d.std)
	if err != nil {
		return err
	}
	return d.kept.begin(to, from.Interfaces())
}

// flush writes what was gathered, and what the kernel dropped until then: the file knows it, however this ends.
func (d *decoder) flush() error {
	if d.dropped != nil && len(d.kept.buf) > 0 {
		d.kept.drops(d.dropped(), d.from.record.Time)
	}
	return errors.Join(d.lines.flush(), d.kept.flush())
}

// captureError says what is wrong with a file, where, and what was done all the same.
func captureError(name string, err error, done string) error {
	damaged := (*capture.Error)(nil)
	if !errors.As(err, &damaged) {
		return err
	}
	short := errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case damaged.Record == 0 && short:
		return fmt.Errorf("%s ends within its header", nameOf(name))
	case damaged.Record == 0:
		return plainError(name, damaged.Err)
	case short:
		return fmt.Errorf("%s is damaged: it ends within record %d, which begins at offset %d; %s", nameOf(name), damaged.Record, damaged.Offset, done)
	}
	return fmt.Errorf("%s is damaged: record %d at offset %d: %w; %s", nameOf(name), damaged.Record, damaged.Offset, damaged.Err, done)
}

// plainError names the file once.
func plainError(name string, err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", nameOf(name), err)
}

func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return text.Plain(file)
}
