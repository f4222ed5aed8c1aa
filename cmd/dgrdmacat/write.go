package main

import (
	"context"
	"flag"
	"io"
	"math"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

var writeCommand = command{
	name: "write", summary: "write into a peer's memory, with a flag word behind the data", args: "[-]", dials: true,
	about: `Writes bytes into the memory of a peer of any kind, waits until it acknowledged
them, and says who does not answer.

  dgrdmacat write --to URL --addr 0x400 --text hello --flag-addr 0x40
  dgrdmacat write --to udp:10.0.0.2:7100 --addr 0x1000 --file F --flag-addr 0 --flag-value 7
  produce | dgrdmacat write --to URL --addr 4096 -
  dgrdmacat write --to URL --flag-addr 0x40 --count 10 --flag-step 1 --interval 1s

URL is udp:HOST:PORT, with an address or a name, or the complete one that the peer
printed, which Ethernet needs, and all peers but other dgrdmacats and programs of
this library.

The bytes come from --file, --data, --text or, with -, from standard input. The
flag is a 32-bit little-endian word that is written when all of them are there;
without bytes it is all that is written. Addresses and words are decimal, or
hexadecimal after 0x.

More than --size bytes go in several transactions. The flag comes with the last,
which leaves when all others are acknowledged. Peers of the kinds fpga and
opencpi-legacy need a flag in every transaction, so theirs is one, however large.

Peers of the kind opencpi2 never acknowledge, so that it is not known what arrived.
A port that the system says nobody has, or a machine, is an error all the same.
They are sent 868 full frames a second, 1.3 MB/s: with the socket buffer that Linux
makes, 212992 bytes, they may stand still for 53 ms before something is lost. Where
net.core.rmem_default of their machine is larger, give it as the option peerbuf, which
"dgrdmacat help url" explains: the pace becomes as much faster, and the 53 ms remain.

  dgrdmacat write --profile opencpi2 --to 'URL?peerbuf=8388608' --addr 0 --file F

A peer that serves named peers only has to know this side, so say where it is:
--local with the complete string that it was given, which "dgrdmacat help url" explains.
OpenCPI's drivers want ids from 1 to 9: --id, or in that string.`,
	flags: func(fs *flag.FlagSet) action {
		o := new(writeOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			if len(args) > 0 && o.to == "" && meant(fs, args[0], true) != "" {
				return badUsage("unexpected argument %q%s", args[0], meant(fs, args[0], true))
			}
			if err := o.check(args); err != nil {
				return err
			}
			if err := o.keys.into(&o.to); err != nil {
				return err
			}
			return write(ctx, o, std)
		}
	},
}

type writeOptions struct {
	to, local           string
	profile             settingFlag
	id                  idFlag
	addr                wordFlag
	file                string
	data, text          bytesFlag
	stdin               bool
	flagAddr, flagValue wordFlag
	flagStep            wordFlag
	size                sizeFlag
	count               int
	interval            time.Duration
	json                bool
	metrics             metricsFlag
	keys                keyFlag
}

const (
	writeSize     = 1 << 20
	writeSizeMost = 16 << 20
)

func (o *writeOptions) register(fs *flag.FlagSet) {
	o.size.value, o.flagValue.value = writeSize, 1
	fs.StringVar(&o.to, "to", "", "`URL` of the peer: udp:HOST:PORT, or what it printed")
	fs.StringVar(&o.local, "local", "", "`URL` of this side; Ethernet needs it")
	o.id.register(fs, "that of --local, or one that suits the peer")
	o.profile.register(fs, settings.Profile, ": what the other side is; "+noneBetweenUs)
	fs.Var(&o.addr, "addr", "`address` in the peer's memory of the first byte")
	fs.Var((*fileFlag)(&o.file), "file", "write the content of this `file`")
	fs.Var(&o.data, "data", "write these bytes: `hex` digits, with spaces or without")
	fs.Var(&o.text, "text", "write this `text`, without a newline")
	fs.Var(&o.flagAddr, "flag-addr", "`address` of the flag; without it there is none")
	fs.Var(&o.flagValue, "flag-value", "`word` that is written there")
	fs.Var(&o.flagStep, "flag-step", "`word` that is added to the flag each time, with --count")
	fs.Var(&o.size, "size", "`bytes` per transaction, 1 to 16M")
	fs.IntVar(&o.count, "count", 1, "how often to write it all; 0: until interrupted")
	fs.DurationVar(&o.interval, "interval", 0, "pause between two times, such as 500ms; 0: none")
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	o.metrics.register(fs)
	o.keys.register(fs)
}

func (o *writeOptions) check(args []string) error {
	o.stdin = len(args) == 1 && args[0] == "-"
	sources := 0
	for _, given := range []bool{o.file != "", o.data != "", o.text != "", o.stdin} {
		if given {
			sources++
		}
	}
	switch {
	case len(args) > 0 && !o.stdin:
		return badUsage("unexpected argument %q: files are named by --file, - is standard input", args[0])
	case o.to == "":
		return badUsage("write to whom? --to takes the endpoint string that the peer prints")
	case sources > 1:
		return badUsage("--file, --data, --text and - exclude each other")
	case sources == 0 && !o.flagAddr.given:
		return badUsage("what to write? --file, --data, --text, - or, for a flag alone, --flag-addr")
	case sources == 1 && !o.addr.given:
		return badUsage("write where? --addr is the address in the peer's memory")
	case sources == 0 && o.addr.given:
		return badUsage("--addr needs bytes: --file, --data, --text or -")
	case !o.flagAddr.given && (o.flagValue.given || o.flagStep.given):
		return badUsage("--flag-value and --flag-step need --flag-addr")
	case o.size.value < 1 || o.size.value > writeSizeMost:
		return badUsage("--size %v: need 1 to 16M", &o.size)
	case o.count < 0:
		return badUsage("--count %d: need 1 or more, or 0 for ever", o.count)
	case o.interval < 0:
		return badUsage("--interval %v: need "+aTime+", or 0 for no pause", o.interval)
	}
	return nil
}

// ends reads whom to write to, and from where.
func (o *writeOptions) ends(ctx context.Context, stderr io.Writer) (local, peer url.Endpoint, profile dgrdma.Profile, err error) {
	if peer, err = parsePeer("--to", o.to); err != nil {
		return
	}
	if err = o.profile.sayOnce(peer); err != nil {
		return
	}
	if _, given := peer.Options.Get("profile"); !given {
		peer.Options = peer.Options.With("profile", o.profile.orDefault())
	}
	name, _ := peer.Options.Get("profile")
	if profile, err = dgrdma.ProfileByName(name, peer.Scheme == url.UDP); err != nil {
		err = badUsage("--profile: %w", err)
		return
	}
	local, peer, err = endsAs(ctx, stderr, o.local, o.id, peer)
	return
}

// idFor returns the id for this side, or 0 for any.
func (o *writeOptions) idFor(local, peer url.Endpoint, p *dgrdma.Profile) dgrdma.EndpointID {
	switch {
	case o.id != 0 || local.ID != 0:
		return dgrdma.EndpointID(o.id) // the string's, if there is none
	case p.Session:
		return idsBeside(peer.ID, 1)
	case peer.ID == 1: // small ones, for OpenCPI's drivers (D1-7)
		return 2
	}
	return 1
}

// room is how many bytes can be written from --addr on.
func (o *writeOptions) room(p *dgrdma.Profile, memory uint64) uint64 {
	n := memory - min(memory, uint64(o.addr.value))
	if p.NoSentinel {
		n = min(n, wholeMost)
	}
	return n
}

// suits refuses what the peer cannot take, or would take for something else,
// before anything is sent.
func (o *writeOptions) suits(p *dgrdma.Profile, memory, bytes uint64) error {
	at, end := uint64(o.addr.value), uint64(o.addr.value)+bytes
	if rest := bytes % uint64(p.Final); rest != 0 {
		end += uint64(p.Final) - rest // with zeros
	}
	flagAt := o.flagAddr.value
	switch {
	case bytes == 0 && !o.flagAddr.given:
		return badUsage("there is nothing to write: no bytes, and no --flag-addr")
	case bytes > 0 && at%uint64(p.AddressMultiple) != 0:
		return badUsage("--addr %#x: peers of the kind %s take data at multiples of %d", at, p.Name, p.AddressMultiple)
	case bytes > 0 && end > memory:
		return badUsage("%s from %#x on would end at %#x, the peer's memory ends at %#x", count(bytes, "byte"), at, end, memory)
	case o.flagAddr.given && uint64(flagAt)+4 > memory:
		return badUsage("--flag-addr %#x: the flag ends at %#x, the peer's memory at %#x", flagAt, uint64(flagAt)+4, memory)
	case p.NoSentinel && !o.flagAddr.given:
		return badUsage("peers of the kind %s need a flag: add --flag-addr", p.Name)
	case p.Name == "fpga" && flagAt%4 != 0:
		return badUsage("--flag-addr %#x: peers of the kind fpga take flags at multiples of 4", flagAt)
	case p.NoHalfSentinel && o.flagAddr.given && o.flagValue.value == math.MaxUint32:
		return badUsage("--flag-value %#x: peers of the kind %s take that for no flag", o.flagValue.value, p.Name)
	case p.NoSentinel && o.size.given && bytes > o.size.value:
		return badUsage("--size %v: peers of the kind %s need a flag in every transaction, so all %d bytes have to be one", &o.size, p.Name, bytes)
	case p.NoSentinel && bytes > wholeMost:
		return badUsage("%d bytes are too much for one transaction, which peers of the kind %s need", bytes, p.Name)
	}
	return nil
}

// wholeMost is the largest amount that goes in one transaction to peers that
// need a flag in each. Messages are counted to 65535, and theirs are short:
// what is not refused here may be by the library.
const wholeMost = 128 << 20
