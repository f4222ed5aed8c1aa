package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// mostListed is how many addresses are printed. Arbitrary: a machine with containers has hundreds.
const mostListed = 8

// reach says by which other addresses peers reach an endpoint that is at all of this machine, in
// a line of its own; of others it says nothing.
func reach(e *dgrdma.Endpoint) string {
	if !e.LocalAddr().AddrPort().Addr().IsUnspecified() {
		return ""
	}
	var main string
	var others []string
	for i, s := range e.URLs() {
		u, err := url.Parse(s)
		if err != nil {
			panic("BUG: " + err.Error()) // it was made by String
		}
		ip := inString(u.Addr.Addr())
		if i == 0 {
			main = ip
			continue
		}
		others = append(others, ip)
	}
	return everywhere(main, others)
}

// everywhere is said beside the address of what is at all of this machine.
func everywhere(main string, others []string) string {
	if n := len(others) - mostListed; n > 0 {
		others = append(others[:mostListed], fmt.Sprintf("and %d more", n))
	}
	if len(others) == 0 {
		return "that is at every address of this machine\n"
	}
	return fmt.Sprintf("that is at every address of this machine: in place of %s peers may write %s\n", main, strings.Join(others, ", "))
}

// inString is an address as it stands in a string.
func inString(ip netip.Addr) string {
	if ip.Is6() {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}
