package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
)

var decodeCommand = command{
	name: "decode", summary: "show the frames in captures, or on an interface",
	args: "FILE...|-|-i INTERFACE",
	about: `Shows every DG/RDMA frame of captures, pcap or pcapng, compressed by gzip or not;
- is standard input. With -i, those that an interface sends and receives, until
interrupted.

  dgrdmacat decode trace.pcap
  ssh host tcpdump -U -w - | dgrdmacat decode -
  dgrdmacat decode --json trace.pcap | jq 'select(.kind == "write")'
  dgrdmacat decode -i eth0 -v --txn 17

A line reads: number of the record, seconds since the first frame, who to whom;
endpoint ids, frame id, acknowledged ids (first+count); then for each message its
transaction, its place in that, what it writes where, and the completion word. A hello
tells the life of its sender, and the services that share its memory. What the
capturing host joined into one packet is taken apart: 12.3 is the third datagram of
record 12. Frames that are cut or malformed are shown, and say so.

On Ethernet the EtherType tells a frame. UDP has no fixed port: what looks like a
frame is taken, or, with --port, everything from and to these ports.

Filters take lists, as in --txn 17,18, and can be repeated; a frame must fit all
filters that are given, and fits each by any of its values.`,
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

// decoder shows frames.
type decoder struct {
	o       *decodeOptions
	std     *stdio
	printer text.Printer
	view    text.View
	buf     []byte // what is to be written
	counts  decodeCounts
	broken  error // why nothing can be written any more
}

func newDecoder(o *decodeOptions, std *stdio) *decoder {
	d := &decoder{o: o, std: std, printer: text.Printer{Bytes: o.bytes, Absolute: o.absolute}}
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
	var failed []error
	if d.o.iface == "" {
		failed = d.files(ctx, files)
	} else {
		live, err := capture.OpenLive(ctx, d.o.iface, d.o.frames.Filter(), d.flush)
		if err != nil {
			return err
		}
		defer live.Close()
		fmt.Fprintf(d.std.err, "capturing on %s\n", d.o.iface)
		failed = append(failed, d.frames(ctx, captured.NewReader(live, d.o.frames)))
		d.counts.live, d.counts.dropped = true, live.Dropped()
	}
	failed = slices.DeleteFunc(append(failed, d.flush()), func(err error) bool { return errors.Is(err, errEnough) })
	if d.std.isClosedPipe(d.broken) {
		return errors.Join(failed...)
	}
	err := errors.Join(append(failed, d.broken)...)
	// An empty answer says why it is empty.
	if d.o.stats || d.o.iface != "" || err == nil && d.counts.shown == 0 {
		d.counts.print(d.std.err)
	}
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
	r, err := captured.NewFileReader(&eager{in, d.flush}, d.o.frames)
	if err == nil {
		err = d.frames(ctx, r)
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

// frames shows what a reader finds.
func (d *decoder) frames(ctx context.Context, r *captured.Reader) error {
	defer func() { d.counts.add(r.Stats()) }()
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
	if d.printer.Start.IsZero() {
		d.printer.Start = p.Time
	}
	d.view.Decode(p)
	if d.view.Malformed != nil {
		d.counts.malformed++
	}
	if !d.o.filter.Match(&d.view) {
		return nil
	}
	d.counts.shown++
	d.buf = d.printer.Append(d.buf, &d.view)
	if d.counts.shown == d.o.count {
		return errEnough
	}
	if len(d.buf) >= writeAt {
		return d.flush()
	}
	return nil
}

// flush writes what was gathered.
func (d *decoder) flush() error {
	if len(d.buf) > 0 && d.broken == nil {
		_, d.broken = d.std.out.Write(d.buf)
	}
	d.buf = d.buf[:0]
	if d.broken != nil {
		return errEnough
	}
	return nil
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
	return file
}
