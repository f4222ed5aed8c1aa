package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/page"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/link/stream"
)

var reportCommand = command{
	name: "report", summary: "make one HTML page of what happened in a capture", args: "FILE", elsewhere: ofReport,
	about: `Reads a capture, pcap or pcapng, and writes a page that says what happened: findings
in words, the flows of DG/RDMA, pictures of those with most data, and the connections
of iWARP, with their operations and round trips. The page needs no network.

  dgrdmacat report trace.pcap -o report.html
  tcpdump -i eth0 -w - ether proto 0xF042 | dgrdmacat report - -o report.html

FILE is - for standard input. Without -o the page goes to standard output, unless that
is a terminal. Interrupted, it reports what it has read. A damaged capture is reported
as far as it goes; the exit code is then 1. UDP frames are recognised on any port,
unless --port names some, and connections of iWARP by their set-up, unless --port names
some as tcp:PORT; where only such are named, DG/RDMA is left out. With --addr, the report is of what
goes from or to these addresses.

  dgrdmacat report trace.pcap --port tcp:20049 --addr 10.0.0.3 -o report.html`,
	flags: func(fs *flag.FlagSet) action {
		o := new(reportOptions)
		fs.Var((*fileFlag)(&o.out), "o", "`FILE` to write; - is standard output, as without it")
		fs.BoolVar(&o.force, "force", false, "overwrite it")
		fs.BoolVar(&o.json, "json", false, "write the analysis as one JSON object in place of the page")
		o.capture.register(fs)
		registerAddr(fs, &o.only.Ends)
		fs.Func("flow", "draw the flow with that `number` in the table of flows, in place of those with most data", func(s string) (err error) {
			if o.flow, err = strconv.Atoi(s); err != nil || o.flow < 1 {
				return errors.New("flows have numbers from 1")
			}
			return nil
		})
		return func(ctx context.Context, std *stdio, args []string) error {
			switch {
			case len(args) != 1:
				return badUsage("one FILE, or - for standard input")
			case o.out == "" && !o.json && isTerminal(std.out):
				return badUsage("the page is not for a terminal: give -o FILE, or > FILE")
			case o.json && o.flow != 0:
				return badUsage("--flow chooses what is drawn, and --json draws nothing")
			}
			o.capture.narrow()
			return o.run(ctx, std, args[0])
		}
	},
}

type reportOptions struct {
	out         string
	force, json bool
	flow        int
	capture     captureOptions
	only        text.Filter // by ends alone
}

func (o *reportOptions) run(ctx context.Context, std *stdio, name string) error {
	if o.out == "" {
		o.out = "-"
	}
	if o.out != "-" {
		if err := orForce(stream.CheckFile(o.out, o.force)); err != nil {
			return err
		}
	}
	in, err := openInput(ctx, name, std.in)
	switch {
	case errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%s is a directory, need a capture", name)
	case err != nil:
		return err
	}
	defer in.Close()
	title := text.Plain(filepath.Base(in.name))
	counter := &countingReader{in, newMeter(in.size)}
	stop := counter.meter.show(std.err)
	r, damage := analyze(ctx, counter, o.capture, &o.only)
	stop()
	switch {
	case r != nil:
	case errors.Is(damage, errInterrupted):
		return fmt.Errorf("%s: %w before there was anything to report", title, errInterrupted)
	default:
		return captureError(name, damage, "")
	}
	if o.flow > len(r.Flows) {
		return badUsage("--flow %d: %s has %s", o.flow, title, count(len(r.Flows), "flow"))
	}
	content := func(w io.Writer) error {
		if o.json {
			return json.NewEncoder(w).Encode(r)
		}
		return page.Write(w, r, page.Options{Title: title, Flow: o.flow})
	}
	if o.out == "-" {
		err = buffered(std.out, content)
	} else {
		err = orForce(writeWhole(o.out, o.force, content))
	}
	if err != nil {
		return err
	}
	interrupted := ""
	if ctx.Err() != nil {
		interrupted = "interrupted; "
	}
	fmt.Fprintf(std.err, "%s: %s%s\n", title, interrupted, reportSummary(r))
	if damage != nil {
		return captureError(name, damage, "the report is of what comes before")
	}
	return nil
}

func reportSummary(r *inspect.Report) string {
	n := map[inspect.Severity]int{}
	for _, f := range r.Findings {
		n[f.Severity] += 1 + f.More
	}
	what := count(len(r.Flows), "flow")
	switch {
	case len(r.Connections) > 0 && len(r.Flows) > 0:
		what += ", " + count(len(r.Connections), "connection")
	case len(r.Connections) > 0:
		what = count(len(r.Connections), "connection")
	}
	if n := r.Capture.Sealed; n > 0 {
		what += ", " + count(n, "sealed frame")
	}
	return fmt.Sprintf("%s in %s, %s; problems %d, warnings %d, notes %d",
		count(r.Capture.Frames+r.Capture.FPDUs, "frame"), count(r.Capture.Records, "record"), what, n[inspect.Problem], n[inspect.Warning], n[inspect.Note])
}

// analyze reads a capture to its end, to where it is damaged, or until it is
// interrupted. Without a report the capture could not be read at all.
func analyze(ctx context.Context, in io.Reader, o captureOptions, only *text.Filter) (*inspect.Report, error) {
	file, err := capture.NewFile(in)
	if err != nil {
		return nil, err
	}
	a := inspect.New()
	a.OnlyPorts(len(o.frames.Ports) > 0, len(o.iwarp.Ports) > 0)
	o.iwarp.Failed = func(t iwarp.Attempt) {
		if only.MatchEnds(capture.Addr{UDP: t.From}, capture.Addr{UDP: t.To}) {
			a.Attempt(t)
		}
	}
	streams := iwarp.New(o.iwarp, func(e *iwarp.Event) error {
		if only.MatchConnection(e.Conn.TCP) {
			a.Event(e)
		}
		return nil
	})
	from := &looked{frameSource: file, begins: a.Begins}
	told := &inspect.Tap{Source: from, Analyzer: a, Frames: o.frames}
	frames := captured.NewReader(&iwarp.Tap{Source: told, Decoder: streams}, o.frames)
	p, err := frames.Next()
	for ; err == nil; p, err = frames.Next() {
		if only.MatchEnds(p.Src, p.Dst) {
			a.Add(p)
		}
	}
	a.Counted(frames.Stats())
	a.CountedTCP(streams.Stats())
	a.Dropped(file.Dropped())
	if err == io.EOF || ctx.Err() != nil {
		return a.Report(), nil
	}
	a.Damaged(err)
	return a.Report(), err
}

// countingReader knows how much was read.
type countingReader struct {
	io.Reader
	meter *meter
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.meter.moved.Add(int64(n))
	return n, err
}
