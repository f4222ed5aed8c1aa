package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link/stream"
	"github.com/dgrdma/dgrdma/url"
)

var sendCommand = command{
	name: "send", summary: "send a file or standard input to dgrdmacat listen", args: "[FILE] URL", elsewhere: ofNetcat,
	about: `Sends FILE, or standard input, to the dgrdmacat listen at URL, and ends
well only when the receiver says that it has all of it: written, and if into a
file, on disk under its name.

  dgrdmacat send backup.tar udp:10.0.0.2:9000
  tar c . | dgrdmacat send udp:camera.local:9000
  dgrdmacat send backup.tar 'ocpi-udp-rdma:10.0.0.2;9000;69468160.5.65535'

Only bytes are sent: neither the name of a file nor its mode, times or holes. Of a
file that grows meanwhile as much is sent as there was at the beginning; with one
that is cut meanwhile it fails, and nothing is left at the receiver. Over UDP
the receiver's address, or its host's name, and port are enough; over Ethernet URL is
what it printed, which is quoted for its semicolons. Options, as in URL?giveup=2s, apply to this side only.`,
	flags: func(fs *flag.FlagSet) action {
		o := new(sendOptions)
		fs.StringVar(&o.local, "local", "", "`URL` of this side; Ethernet needs it, as in ether:eth0")
		fs.BoolVar(&o.duplex, "duplex", false, "the receiver's standard input comes back to standard output; both sides need it")
		fs.BoolVar(&o.checksum, "checksum", false, "compare SHA-256 at both ends")
		fs.BoolVar(&o.json, "json", false, "print the summary as one JSON object on standard output")
		o.metrics.register(fs)
		o.keys.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			switch {
			case len(args) == 1:
				o.file, o.url = "-", args[0]
			case len(args) == 2:
				o.file, o.url = args[0], args[1]
				if err := swapped(args[0], args[1]); err != nil {
					return err
				}
			default:
				return badUsage("need [FILE] URL; quote the URL")
			}
			if o.json && o.duplex {
				return badUsage("--json and --duplex both want standard output")
			}
			if err := o.keys.into(&o.url); err != nil {
				return err
			}
			peer, err := parsePeer("URL", o.url)
			if err != nil {
				return err
			}
			r, err := o.run(ctx, std, peer)
			switch {
			case r != nil:
			case owesObject(o.json, err):
				r = &streamResult{Peer: o.url, File: o.file, Error: err.Error()}
			default:
				return err
			}
			return errors.Join(err, r.print(o.json, std))
		}
	},
}

// swapped refuses what is no file and URL, but the other way round, or the host and port of nc.
func swapped(file, to string) error {
	if _, err := url.Parse(to); err == nil {
		return nil
	}
	if _, err := url.Parse(file); err == nil {
		return badUsage("the URL comes last: send %s %s", to, file)
	}
	if _, err := strconv.ParseUint(to, 10, 16); err == nil {
		return badUsage("URL %s: did you mean udp:%s:%s?", to, file, to)
	}
	return nil
}

type sendOptions struct {
	file, url, local       string
	duplex, checksum, json bool
	metrics                metricsFlag
	keys                   keyFlag
}

// run sends the file. There is no result where nothing could be sent.
func (o *sendOptions) run(ctx context.Context, std *stdio, peer url.Endpoint) (*streamResult, error) {
	from, err := openInput(ctx, o.file, std.in)
	switch {
	case errors.Is(err, unix.EISDIR):
		return nil, fmt.Errorf("%s is a directory: pack it, as in tar c %s | dgrdmacat send URL", o.file, o.file)
	case err != nil:
		return nil, err
	}
	defer from.Close()
	local, peer, err := endsFor(ctx, std.err, o.local, peer)
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case err != nil:
		return nil, explainDial(err, o.url, peer)
	}
	stop, err := o.metrics.start(std.err)
	if err != nil {
		return nil, err
	}
	defer stop()
	memory := linkReserve
	if o.duplex {
		memory = stream.Memory
	}
	h, err := openHost(std.err, local, memory, dgrdma.Config{})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	o.metrics.host(h)
	stopSaying := sayUnheard(std.err, h.Endpoint(), local, peer)
	x, err := stream.Dial(ctx, h, peer.String(), from.size, &stream.Options{Duplex: o.duplex, Checksum: o.checksum})
	told := stopSaying()
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case err != nil:
		return nil, explainDial(orTold(err, told, peer), o.url, peer)
	}
	t := &transfer{Stream: x, from: from, meter: newMeter(from.size)}
	if o.duplex {
		t.into = &output{Writer: std.out, end: closerOf(std.out)}
	}
	if err = t.runShown(ctx, std); err != nil {
		err = inWords(err, "receiver", x)
	}
	return t.result(from.file, err), err
}
