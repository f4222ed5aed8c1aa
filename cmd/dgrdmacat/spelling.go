package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/dgrdma/dgrdma/url"
)

// meant asks whether an argument is the address of a flag.
func meant(fs *flag.FlagSet, arg string) string {
	if _, err := url.Parse(arg); err != nil && !isTCP(arg) || fs.Lookup("to") == nil {
		return ""
	}
	if fs.Lookup("serve") == nil {
		return fmt.Sprintf(": did you mean --to %s?", arg)
	}
	return fmt.Sprintf(": did you mean --to %s, or --serve?", arg)
}

// notDefined is what package flag says of a flag that there is not.
const notDefined = "flag provided but not defined: -"

// here says behind an error of the flags what in this command does what a flag does that there is not: one of another program,
// or one that is misspelt.
func (c *command) here(fs *flag.FlagSet, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), notDefined)
	if does := c.elsewhere[name]; unknown && does != "" {
		return ": here that is " + does + ";"
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if like := closest(name, names); unknown && like != "" {
		return didYouMean(dashes(like))
	}
	return didYouMean("")
}

// didYouMean asks, behind what is not there and before what else a user may do, whether it is a misspelling, unless that is "".
func didYouMean(like string) string {
	if like == "" {
		return ";"
	}
	return fmt.Sprintf(": did you mean %s?", like)
}

// closest returns the word of which another one is a misspelling, or "".
func closest(typed string, words []string) (best string) {
	least := len(typed)/3 + 1 // of letters that are wrong, too many
	for _, w := range words {
		if n := mistakes(typed, w); n < least && len(w) > 1 {
			best, least = w, n
		}
	}
	return best
}

// mistakes counts what turns one word into another: letters that are left out, too many, or others, and neighbours that changed
// places (the optimal string alignment distance).
func mistakes(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1) // of two letters less of a, and of one less
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			other := 1
			if a[i] == b[j] {
				other = 0
			}
			row[j+1] = min(last[j]+other, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// Flags of the programs from which people come, and what does the same here.
var (
	ofIperf = map[string]string{
		"R": "--reverse", "b": "--rate, as in --rate 1Gbit", "bitrate": "--rate, as in --rate 1Gbit", "bandwidth": "--rate, as in --rate 1Gbit",
		"c": "--to, as in --to udp:HOST:PORT", "client": "--to, as in --to udp:HOST:PORT",
		"s": "--serve, as in --serve udp:7100", "server": "--serve, as in --serve udp:7100",
		"p": "in the URL, udp:HOST:PORT", "port": "in the URL, udp:HOST:PORT", "B": "--local, as in --local udp:10.0.0.1", "bind": "--local, as in --local udp:10.0.0.1",
		"P": "--peers", "parallel": "--peers", "l": "--size", "length": "--size", "len": "--size",
		"u": "the URL, udp:HOST:PORT", "udp": "the URL, udp:HOST:PORT", "J": "--json", "time": "-t", "interval": "-i", "1": "--once", "one-off": "--once",
		"d": "--bidir", "O": "--warm-up", "omit": "--warm-up",
	}
	ofPing   = map[string]string{"s": "--size", "W": "--wait", "I": "--local, as in --local udp:10.0.0.1", "count": "-c", "p": "in the URL, udp:HOST:PORT", "port": "in the URL, udp:HOST:PORT"}
	ofNetcat = map[string]string{
		"l": "the command listen: dgrdmacat listen udp:9000", "p": "in the URL, udp:9000", "u": "the URL, udp:9000",
		"k": "listen --keep", "s": "--local, as in --local udp:10.0.0.1",
	}
)
