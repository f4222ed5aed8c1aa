package inspect

import (
	"bytes"
	"fmt"
	"strconv"
)

// strange reports whether a side began with something that is not MPA.
func (k *connection) strange() bool { return k.ways[0].began != nil || k.ways[1].began != nil }

// aboutStrangers tells who does not speak iWARP. Where nobody asked for it, it is no set-up that failed: the port has another protocol, or
// somebody looked what it has.
func (k *connection) aboutStrangers(c *findings) {
	if request, i := k.of.Request, int(k.of.Initiator); request != nil {
		d := &k.ways[1-i]
		c.add(Problem, "not iWARP", 1, []int{request.At.Record, d.givenUp}, "Who answers at %s does not speak iWARP: to the set-up request of %s came what begins with %s.",
			k.name(1-i), k.name(i), beginning(d.began))
		return
	}
	w := 0
	if k.ways[0].began == nil {
		w = 1
	}
	d := &k.ways[w]
	c.add(Warning, "not iWARP", 1, []int{d.givenUp}, "The connection between %s and %s is none of iWARP: what %s sent begins with %s.", k.name(0), k.name(1), k.name(w), beginning(d.began))
}

// beginning shows what a direction begins with, and says of which protocol that is, if it is a well known one.
func beginning(b []byte) string {
	shown := strconv.Quote(string(b))
	if bytes.ContainsFunc(b, func(r rune) bool { return r > '~' || r < ' ' && r != '\r' && r != '\n' && r != '\t' }) {
		shown = fmt.Sprintf("the bytes %x", b)
	}
	if p := protocolOf(b); p != "" {
		shown += ", which is " + p
	}
	return shown
}

// beginnings are those of protocols that have one.
var beginnings = []struct{ with, protocol string }{
	{"HTTP/", "HTTP"}, {"<!DOCTYPE", "HTTP"}, {"<html", "HTTP"}, {"GET ", "HTTP"}, {"POST ", "HTTP"}, {"PUT ", "HTTP"}, {"HEAD ", "HTTP"}, {"OPTIONS ", "HTTP"}, {"PRI * HTTP/2", "HTTP"},
	{"SSH-", "SSH"}, {"\x15\x03", "TLS"}, {"\x16\x03", "TLS"},
}

func protocolOf(b []byte) string {
	for _, p := range beginnings {
		if len(b) >= len(p.with) && bytes.EqualFold(b[:len(p.with)], []byte(p.with)) {
			return p.protocol
		}
	}
	return ""
}
