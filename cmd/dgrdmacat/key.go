package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

var keyCommand = command{
	name: "key", summary: "draw a key under which connections are sealed", args: "new",
	words: func() []string { return []string{"new"} },
	about: `Draws a key at random, and writes it to a file that its owner alone can read, or to standard
output. Endpoints that have the same key seal their connections: what they send can be read, forged
and replayed by nobody else.

  dgrdmacat key new -o lab.key
  dgrdmacat listen --key-file lab.key udp:7100
  dgrdmacat send --key-file lab.key FILE udp:HOST:7100

A line of a key file has the key for all peers, or the id of a peer and the key for that one.
Lines that begin with # say nothing. A file that others may read or write is refused. A key
never stands in a command line, where others see it: copy the file, as by scp -p.

Whoever has the key can speak for everyone else who has it: who must not, gets a key of its own.`,
	flags: func(set *flag.FlagSet) action {
		out := set.String("o", "", "write it to this `file`, which must not be there yet (default standard output)")
		return func(_ context.Context, std *stdio, args []string) error {
			if len(args) != 1 || args[0] != "new" {
				return badUsage("need one word, new")
			}
			if err := writeKey(std.out, *out, dgrdma.NewKey().Text()+"\n"); err != nil || *out != "" && *out != "-" {
				return err
			}
			if mode, ok := openToOthers(std.out); ok {
				fmt.Fprintf(std.err, "others can read that file (%v): chmod 600 it, or it will not be taken\n", mode)
			}
			return nil
		}
	},
}

// keyFlag is --key-file of commands whose endpoint strings have all other options.
type keyFlag struct{ settingFlag }

func (f *keyFlag) register(fs *flag.FlagSet) {
	f.settingFlag.register(fs, settings.KeyFile, "; both sides need the same keys")
}

// into puts what was given into endpoint strings, of which those that are none, or over TCP, are left to who reads them.
func (f *keyFlag) into(endpoints ...*string) error {
	for _, s := range endpoints {
		if f.text == "" || *s == "" {
			continue
		}
		if isTCP(*s) {
			return f.notOverTCP()
		}
		u, err := url.Parse(*s)
		if err != nil {
			continue
		}
		if err := f.sayOnce(u); err != nil {
			return err
		}
		u.Options = u.Options.With(f.of.Option, f.text)
		*s = u.String()
	}
	return nil
}

// notOverTCP refuses a key of whom nothing would be sealed.
func (f *keyFlag) notOverTCP() error {
	return badUsage("--%s is for connections over UDP and Ethernet: nothing is sealed over TCP", f.of.Flag)
}

// anybody is who may come to an endpoint of ours that names nobody.
func anybody(at url.Endpoint) string {
	if sealed(at) {
		return "any peer that shares a key with it"
	}
	return "any peer"
}

// sealed reports whether an endpoint seals its connections.
func sealed(u url.Endpoint) bool {
	_, given := u.Options.Get(settings.KeyFile.Option)
	return given
}

// openToOthers reports whether what is written to is a file that others than its owner can read or write.
func openToOthers(w io.Writer) (mode fs.FileMode, ok bool) {
	f, is := w.(*os.File)
	if !is {
		return 0, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	mode = info.Mode().Perm()
	return mode, mode&0o077 != 0
}

// writeKey writes a key to a new file, or to w.
func writeKey(w io.Writer, path, text string) error {
	if path == "" || path == "-" {
		_, err := io.WriteString(w, text)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: a key that is in use is not written over; remove it, or take another name", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
