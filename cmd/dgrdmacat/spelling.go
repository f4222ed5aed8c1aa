package main

import (
	"flag"
	"fmt"
	"net/netip"

	"github.com/dgrdma/dgrdma/url"
)

// meant asks whether an argument is the address of --to, which is that of an endpoint over UDP where the command dials those.
func meant(fs *flag.FlagSet, arg string, dials bool) string {
	if fs.Lookup("to") == nil {
		return ""
	}
	if _, err := url.Parse(arg); err != nil && !isTCP(arg) {
		if arg = placeLike(arg); arg == "" || !dials {
			return ""
		}
	}
	if fs.Lookup("serve") == nil {
		return fmt.Sprintf(": did you mean --to %s?", arg)
	}
	return fmt.Sprintf(": did you mean --to %s, or --serve?", arg)
}

// overUDP begins the strings of endpoints over UDP.
const overUDP = "udp:"

// placeLike returns the endpoint string that is likely meant by an address, or a host's name with a port, as other programs take them; else "".
func placeLike(arg string) string {
	if ip, err := netip.ParseAddr(arg); err == nil && ip.Is6() {
		arg = "[" + arg + "]"
	}
	u, err := url.Parse(overUDP + arg)
	switch hasPort := u.Addr.Port() != 0; {
	case err != nil, u.Host != "" && !hasPort, u.Host == "" && !u.Addr.Addr().IsValid():
		return "" // it may be any word, or number
	case !hasPort:
		return overUDP + arg + ":PORT"
	}
	return overUDP + arg
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
		"d": "--bidir", "O": "--warm-up", "omit": "--warm-up", "n": "--seconds: runs end by time", "bytes": "--seconds: runs end by time", "w": "--sockbuf", "M": "--mtu", "set-mss": "--mtu",
		"a": "--sweep, as in --sweep 64..1M", "all": "--sweep, as in --sweep 64..1M", "D": "--seconds", "duration": "--seconds", "q": "--peers", "qp": "--peers", // of perftest
	}
	ofPing   = map[string]string{"s": "--size", "W": "--wait", "I": "--local, as in --local udp:10.0.0.1", "count": "-c", "p": "in the URL, udp:HOST:PORT", "port": "in the URL, udp:HOST:PORT"}
	ofNetcat = map[string]string{
		"l": "the command listen: dgrdmacat listen udp:9000", "p": "in the URL, udp:9000", "u": "the URL, udp:9000",
		"k": "listen --keep", "s": "--local, as in --local udp:10.0.0.1",
	}
	ofReport  = map[string]string{"r": "the FILE alone", "w": "-o"}
	ofRping   = map[string]string{"d": "-v", "I": "--local, as in --local tcp:10.0.0.1"}
	ofTcpdump = map[string]string{
		"r": "the FILE alone, as in decode trace.pcap", "c": "--count", "n": "always so: no names are looked up", "nn": "always so: no names are looked up",
		"X": "-x", "A": "-x", "V": "-v", "vv": "-v", "vvv": "-v", "tttt": "--absolute", "F": "--bpf", "Y": "--port, --addr, --id and others",
	}
)
