package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"strings"
	"time"
)

var topCommand = command{
	name: "top", summary: "watch endpoints, peers, links, RDMA hosts and RPC servers of another command", args: "ADDR|URL",
	about: `Shows what moves in a program that was started with --metrics, or that serves
what package metrics makes: endpoints, their peers and links, hosts of RDMA
over TCP and servers of RPC and NFS, with rates, those with most traffic first.

  dgrdmacat bench --serve udp:7100 --metrics 9100
  dgrdmacat top 9100

ADDR is that of --metrics; a port by itself is on loopback. On a terminal it
refreshes until q or ^C is pressed. Elsewhere it prints one table, with rates
over one interval, or with --json the object that the program serves.

Rates are per second; OUT and IN are what the program sends and receives, in
bytes of frames. AGAIN is the share of frames with data that were sent again,
FLIGHT frames waiting for acknowledgement and how many may, HEARD the time since
the last frame. Of the congestion control CC is the controller, BW what it takes
the path to deliver, PACED how fast it lets frames leave, MIN RTT the round trip
without queues, FLIGHT the bytes in flight and WINDOW, LONG and SHORT what bounds
them: altogether, after congestion, and until the next probe for bandwidth;
ECN whether marks of congestion get through; BECAUSE says why the controller was
chosen by itself. A link's CREDITS are its free buffers, of all. Of RDMA over TCP
QPS are queue pairs, bytes those of operations, and what was REJECTED, and FAULTS
that ended connections, are counted since the host was opened. Of RPC, ERRORS are
calls without results and of NFS those with another status than NFS3_OK.`,
	flags: func(fs *flag.FlagSet) action {
		o := new(topOptions)
		fs.DurationVar(&o.interval, "interval", time.Second, "`time` between two looks")
		fs.IntVar(&o.count, "count", 0, "how often to look; 0: once, or on a terminal until it is ended")
		fs.BoolVar(&o.json, "json", false, "print one JSON object for each look")
		return func(ctx context.Context, std *stdio, args []string) error {
			if len(args) != 1 {
				return badUsage("top of what? Give the ADDR or URL that --metrics printed")
			}
			if err := o.check(); err != nil {
				return err
			}
			src, err := newViewSource(args[0])
			if err != nil {
				return err
			}
			defer src.close()
			switch f, ok := terminalOf(std.out); {
			case o.json:
				return o.printJSON(ctx, src, std.out)
			case ok && !isDumb():
				return o.watch(ctx, src, f, std)
			}
			return o.printTables(ctx, src, std.out)
		}
	},
}

type topOptions struct {
	interval time.Duration
	count    int
	json     bool
}

func (o *topOptions) check() error {
	switch {
	case o.interval < 100*time.Millisecond || o.interval > time.Hour:
		return badUsage("--interval %v: need 100ms to 1h", o.interval)
	case o.count < 0:
		return badUsage("--count %d: need 0 or more", o.count)
	}
	return nil
}

// pause waits for the next look.
func (o *topOptions) pause(ctx context.Context) error {
	timer := time.NewTimer(o.interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errInterrupted
	}
}

func (o *topOptions) printJSON(ctx context.Context, src *viewSource, out io.Writer) error {
	for i := range max(o.count, 1) {
		if i > 0 {
			if err := o.pause(ctx); err != nil {
				return err
			}
		}
		l, err := src.look(ctx)
		if err != nil {
			return err
		}
		var line bytes.Buffer
		if err := json.Compact(&line, l.body); err != nil {
			return err
		}
		line.WriteByte('\n')
		if _, err := out.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (o *topOptions) printTables(ctx context.Context, src *viewSource, out io.Writer) error {
	before, err := src.look(ctx)
	if err != nil {
		return err
	}
	for i := range max(o.count, 1) {
		if err := o.pause(ctx); err != nil {
			return err
		}
		now, err := src.look(ctx)
		if err != nil {
			return err
		}
		var b strings.Builder
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, line := range topLayout(src.title(now.view, ""), topTables(before.view, now.view), 0, 0) {
			b.WriteString(line.text + "\n")
		}
		if _, err := io.WriteString(out, b.String()); err != nil {
			return err
		}
		before = now
	}
	return nil
}
