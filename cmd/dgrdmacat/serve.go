package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

var serveCommand = command{
	name: "serve", summary: "let peers write into memory, and show what happens to it", args: "[URL]",
	about: fmt.Sprintf(`Exposes memory to named peers, or to any, and prints what happens until it is
interrupted: peers that come up, close, restart, go down, or are refused, and watched words.
A peer that closes says so. One that is killed does not: one of our own kind is asked after
%v of silence whether it is still there (keepalive=TIME in URL), and is down when it has not
answered for %v (giveup=TIME). Peers of other kinds are not asked.

  dgrdmacat serve --accept any --watch 0x40 udp:7100
  dgrdmacat serve --file F --size 16M --create --peer URL --peer 'URL?profile=fpga' udp:7100
  dgrdmacat serve --accept any --until 0x40=1 --for 10s --dump F --dump-range 0x400+4k

URL is where to serve, udp if it is not given; "dgrdmacat help url" explains these
strings. The complete one, which peers need, goes to standard error and to
--url-file. OpenCPI's drivers want ids from 1 to 9: --id, or a complete string. Where only one
peer may write, the system may keep others out before they are seen.

With --file the memory is that file's content, there to be read by others and kept
for the next time. It must not be cut while it is served: that ends it, with 1.

--watch shows words when they have changed, each value; when they change faster
than they can be printed, some are left out and counted, never the last. --until
ends it when a word has a value, be it from the beginning; nothing more is taken
then, and the exit code is 0. If --for runs out before that, the exit code is 1;
interrupted before that, it ends by the signal.`, askedAfter, time.Duration(settings.GiveUp.Default)),
	flags: func(fs *flag.FlagSet) action {
		o := new(serveOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			return serve(ctx, o, std)
		}
	},
}

type serveOptions struct {
	local           url.Endpoint
	size            sizeFlag
	file            string
	create          bool
	peers           []string
	accept, profile settingFlag
	id              idFlag
	readmit         bool
	watch           []span
	until           *wordIs
	limit           time.Duration
	dump            string
	force           bool
	dumpRange       *span
	urlFile         urlFile
	json            bool
	metrics         metricsFlag
	keys            keyFlag
}

// span is addresses from the first to the one behind the last.
type span struct{ from, to uint64 }

// wordIs is a word that shall have a value.
type wordIs struct{ addr, value uint32 }

func (o *serveOptions) register(fs *flag.FlagSet) {
	o.size.value = serveSize
	fs.Var(&o.size, "size", "`bytes` of memory, 1 to 4G; with --file, what the file has")
	fs.Var((*fileFlag)(&o.file), "file", "expose the content of this `file`")
	fs.BoolVar(&o.create, "create", false, "with --file: make it, of --size zeros, if it does not exist")
	fs.Func("peer", "complete `URL` of a peer that may write; may be repeated", func(s string) error {
		o.peers = append(o.peers, s)
		return nil
	})
	o.accept.register(fs, settings.Accept, "")
	o.profile.register(fs, settings.Profile, ", for those whose URL does not say; "+noneBetweenUs)
	o.id.register(fs, "that of URL, or a random one")
	fs.BoolVar(&o.readmit, "readmit", false, "let peers of other kinds that seem to have restarted begin anew; else their frames are refused")
	fs.Func("watch", "print the words at `ADDRESS[-ADDRESS]` when they change; may be repeated", func(s string) error {
		w, err := parseWatch(s)
		o.watch = append(o.watch, w)
		return err
	})
	fs.Func("until", "end at `ADDRESS=WORD`: when the word at that address has that value", func(s string) (err error) {
		o.until, err = parseUntil(s)
		return err
	})
	fs.Func("for", "end after that `time`, such as 10s", func(s string) (err error) {
		o.limit, err = parseLimit(s)
		return err
	})
	fs.Var((*fileFlag)(&o.dump), "dump", "at the end, write the memory to this `file`")
	fs.BoolVar(&o.force, "force", false, "with --dump: replace a file that exists")
	fs.Func("dump-range", "with --dump: only these bytes, `ADDRESS+BYTES`", func(s string) (err error) {
		o.dumpRange, err = parseRange(s)
		return err
	})
	o.urlFile.register(fs, "")
	fs.BoolVar(&o.json, "json", false, "print one JSON object per line")
	o.metrics.register(fs)
	o.keys.register(fs)
}

const (
	serveSize    = 1 << 20
	watchedWords = 1 << 20 // of all --watch together; arbitrary
)

func parseWatch(s string) (span, error) {
	first, last, isRange := strings.Cut(s, "-")
	from, err := parseWord(first)
	if err != nil {
		return span{}, err
	}
	to := from
	if isRange {
		if to, err = parseWord(last); err != nil {
			return span{}, err
		}
	}
	if to < from {
		return span{}, fmt.Errorf("the first address is behind the last")
	}
	return span{uint64(from), uint64(from) + uint64(to-from)/4*4 + 4}, nil
}

func parseUntil(s string) (*wordIs, error) {
	addr, value, ok := strings.Cut(s, "=")
	if !ok {
		return nil, fmt.Errorf("need ADDRESS=WORD, such as 0x40=1")
	}
	a, err := parseWord(addr)
	if err != nil {
		return nil, err
	}
	v, err := parseWord(value)
	return &wordIs{a, v}, err
}

func parseRange(s string) (*span, error) {
	addr, n, ok := strings.Cut(s, "+")
	if !ok {
		return nil, fmt.Errorf("need ADDRESS+BYTES, such as 0x400+4k")
	}
	from, err := parseWord(addr)
	if err != nil {
		return nil, err
	}
	bytes, err := parseSize(n)
	if err == nil && bytes > url.MaxSize {
		err = fmt.Errorf("memory has at most %d bytes", uint64(url.MaxSize))
	}
	return &span{uint64(from), uint64(from) + bytes}, err
}

func (o *serveOptions) check(args []string) error {
	local := "udp"
	switch {
	case len(args) > 1:
		return badUsage("unexpected argument %q: one URL to serve on", args[1])
	case len(args) == 1:
		local = args[0]
	}
	err := o.keys.into(&local)
	if err != nil {
		return err
	}
	if o.local, err = parseServed("URL", local); err != nil {
		return err
	}
	if err := cmp.Or(o.accept.sayOnce(o.local), o.profile.sayOnce(o.local), o.id.sayOnce(o.local)); err != nil {
		return err
	}
	accept, _ := o.local.Options.Get("accept")
	words := uint64(0)
	for _, w := range o.watch {
		words += (w.to - w.from) / 4
	}
	switch {
	case len(o.peers) == 0 && o.accept.text != "any" && accept != "any":
		return badUsage("who may write? --peer URL for each, or --accept any")
	case o.create && o.file == "":
		return badUsage("--create belongs to --file")
	case o.force && o.dump == "":
		return badUsage("--force belongs to --dump")
	case o.dumpRange != nil && o.dump == "":
		return badUsage("--dump-range belongs to --dump")
	case o.size.value < 1 || o.size.value > url.MaxSize:
		return badUsage("--size %v: need 1 to 4G", &o.size)
	case words > watchedWords:
		return badUsage("--watch: %d words, at most %d", words, watchedWords)
	case o.local.Size != 0 && o.size.given && o.local.Size != o.size.value:
		return badUsage("--size %v: the URL says %s", &o.size, count(o.local.Size, "byte"))
	}
	if o.local.Size != 0 {
		o.size.value, o.size.given = o.local.Size, true
	}
	if _, given := o.local.Options.Get("profile"); !given && o.profile.text != "" {
		o.local.Options = o.local.Options.With("profile", o.profile.text)
	}
	name, _ := o.local.Options.Get("profile")
	if _, err := dgrdma.ProfileByName(name, true); err != nil {
		return badUsage("--profile: %w", err)
	}
	return nil
}

// kinds are those that the peers may be of.
func (o *serveOptions) kinds(peers []dgrdma.Peer) []string {
	chosen, _ := o.local.Options.Get(settings.Profile.Option)
	all := []string{chosen}
	for _, p := range peers {
		if p.Profile != nil {
			all = append(all, p.Profile.Name)
		}
	}
	return all
}

// fits checks addresses, now that the size is known.
func (o *serveOptions) fits(size uint64) error {
	for _, w := range o.watch {
		if w.to > size {
			return badUsage("--watch: the last word ends at %#x, the memory at %#x", w.to, size)
		}
	}
	if u := o.until; u != nil && uint64(u.addr)+4 > size {
		return badUsage("--until: the word ends at %#x, the memory at %#x", uint64(u.addr)+4, size)
	}
	if o.dumpRange != nil && o.dumpRange.to > size {
		return badUsage("--dump-range: ends at %#x, the memory at %#x", o.dumpRange.to, size)
	}
	return nil
}

// named reads the peers that may write.
func (o *serveOptions) named() (all []dgrdma.Peer, err error) {
	for _, s := range o.peers {
		u, err := parseComplete("--peer", s)
		if err != nil {
			return nil, err
		}
		if u.Scheme != o.local.Scheme {
			return nil, badUsage("--peer %s: is on another wire than this endpoint (%s)", s, wireName(o.local))
		}
		p, err := dgrdma.ParsePeer(s)
		if err != nil {
			return nil, badUsage("--peer: %w", err)
		}
		if slices.ContainsFunc(all, func(q dgrdma.Peer) bool { return q.ID == p.ID && q.Addr == p.Addr }) {
			return nil, badUsage("--peer %s: it is named twice", s)
		}
		all = append(all, p)
	}
	return all, nil
}
