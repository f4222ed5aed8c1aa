package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/url"
)

// explained is what is said about a string, and the object that --json prints.
type explained struct {
	String    string            `json:"string"`
	Error     *explainedError   `json:"error,omitempty"`
	Wire      string            `json:"wire,omitempty"`
	Dialect   string            `json:"dialect,omitempty"`
	Interface string            `json:"interface,omitempty"`
	MAC       string            `json:"mac,omitempty"`
	Address   string            `json:"address,omitempty"`
	Port      uint16            `json:"port,omitempty"`
	Size      uint64            `json:"size,omitempty"`
	ID        uint16            `json:"id,omitempty"`
	Max       uint16            `json:"max,omitempty"`
	UUID      string            `json:"uuid,omitempty"`
	Options   []explainedOption `json:"options,omitempty"`
	Reachable bool              `json:"reachable"` // with all that a peer needs
	Missing   []string          `json:"missing,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
	Dialects  map[string]string `json:"dialects,omitempty"`

	about    string // of the dialect
	complete bool
	others   []spelling
}

type explainedError struct {
	Offset   int    `json:"offset"`
	Expected string `json:"expected"`
}

type explainedOption struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Meaning string `json:"meaning,omitempty"` // of options that are known
	Error   string `json:"error,omitempty"`
}

// spelling is an endpoint in another dialect, or why it has none there.
type spelling struct{ dialect, text, why string }

// explain explains a string, which was parsed as u or is wrong.
func explain(s string, u url.Endpoint, err error) *explained {
	x := &explained{String: s}
	if wrong := (*url.Error)(nil); errors.As(err, &wrong) {
		x.Error = &explainedError{wrong.Offset, wrong.Expected}
		return x
	}
	x.Wire, x.Dialect, x.complete = wireName(u), u.Dialect.String(), u.Complete()
	x.Interface, x.MAC = u.Interface, u.MAC.String()
	if x.Address = u.Host; u.Addr.Addr().IsValid() {
		x.Address = u.Addr.Addr().String()
	}
	x.Port, x.Size, x.ID, x.Max, x.UUID = u.Addr.Port(), u.Size, u.ID, u.Max, u.UUID
	for key, value := range u.Options.All() {
		o := explainedOption{Key: key, Value: value}
		meaning, err := checkOption(u, key, value)
		if o.Meaning = meaning; err != nil {
			o.Error = strings.TrimPrefix(err.Error(), "dgrdma: ")
		}
		x.Options = append(x.Options, o)
	}
	x.Missing, x.Notes = missing(u), notes(u)
	x.Reachable = len(x.Missing) == 0
	x.Dialects = make(map[string]string)
	for _, d := range eachDialect {
		if d.dialect == u.Dialect {
			x.about = d.about
			continue
		}
		text, err := inDialect(u, d.dialect)
		if err == nil {
			if note := openCPIsIDs(u, d.dialect, text); note != "" && !slices.Contains(x.Notes, note) {
				x.Notes = append(x.Notes, note)
			}
			x.Dialects[d.dialect.String()] = text
			x.others = append(x.others, spelling{dialect: d.dialect.String(), text: text})
		} else if bad := (*url.FormatError)(nil); errors.As(err, &bad) {
			x.others = append(x.others, spelling{dialect: d.dialect.String(), why: bad.Reason})
		}
	}
	return x
}

// missing lists what the string lacks that a peer needs.
func missing(u url.Endpoint) (list []string) {
	switch ip := u.Addr.Addr(); {
	case u.Scheme == url.Ether && !u.MAC.IsValid():
		list = append(list, "a MAC address")
	case u.Scheme == url.UDP && u.Host == "" && (!ip.IsValid() || ip.IsUnspecified()):
		list = append(list, "an IP address")
	}
	if u.Scheme == url.UDP && u.Addr.Port() == 0 {
		list = append(list, "a UDP port")
	}
	if !u.Complete() && !(u.Scheme == url.UDP && u.Reachable()) {
		list = append(list, "the memory's size and the endpoint's id")
	}
	return list
}

// notes lists likely reasons why an endpoint with this string does not work.
func notes(u url.Endpoint) (list []string) {
	ip, octets := u.Addr.Addr(), u.MAC.As6()
	switch {
	case ip.IsLoopback():
		list = append(list, "the address is a loopback one: only this machine reaches it")
	case ip.IsMulticast(), u.MAC.IsValid() && octets[0]&1 != 0:
		list = append(list, "the address is a group's: an endpoint has one of its own")
	case ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "":
		list = append(list, "a link-local address needs the interface too, as in [fe80::1%eth0]")
	case u.Host != "":
		list = append(list, "the host's name is looked up by whoever dials or opens it")
	case u.Scheme == url.UDP && (ip.IsUnspecified() || !ip.IsValid()):
		list = append(list, "an endpoint that opens with it is at every address of this machine: whoever reaches any of them reaches it")
	}
	if u.Scheme == url.UDP && u.Reachable() && !u.Complete() {
		list = append(list, "whoever dials it asks it for its memory's size and its id; peers of other software need the complete string")
	}
	if u.Interface != "" && u.Dialect != url.Short {
		list = append(list, "the interface is one of the endpoint's machine; peers go by the MAC address")
	}
	if u.ID != 0 && u.ID == u.Max {
		list = append(list, "the id is the highest: OpenCPI's C++ hosts need one below the number of ids")
	}
	return list
}

// unlessZero writes a number, and nothing for 0.
func unlessZero(n uint16) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

func (x *explained) print(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s  %s\n", name, fmt.Sprintf(format, args...))
	}
	orNone := func(s, none string) string {
		if s == "" {
			return none
		}
		return s
	}
	b.WriteString(x.String + "\n")
	line("dialect", "%s: %s", x.Dialect, x.about)
	if x.Wire == "udp" {
		line("wire", "UDP")
		line("address", "%s", orNone(x.Address, "not said"))
		line("port", "%s", orNone(unlessZero(x.Port), "any that is free"))
	} else {
		line("wire", "raw Ethernet")
		line("interface", "%s", orNone(x.Interface, "not said"))
		line("mac", "%s", orNone(x.MAC, "not said"))
	}
	if x.complete {
		line("memory", "%s", sizeInWords(x.Size))
		line("id", "%d", x.ID)
		line("ids", "%s", orNone(unlessZero(x.Max), "not said how many"))
		line("uuid", "%s", orNone(x.UUID, "none"))
	}
	for _, o := range x.Options {
		says := o.Meaning
		switch {
		case o.Meaning == "":
			says = "unknown; an endpoint does not open with it"
		case o.Error != "":
			says = "wrong: " + o.Error
		}
		line("option", "%s=%s: %s", o.Key, o.Value, says)
	}
	if x.Reachable {
		line("reachable", "yes")
	} else {
		line("reachable", "no, missing: %s", strings.Join(x.Missing, ", "))
	}
	for _, n := range x.Notes {
		line("note", "%s", n)
	}
	for _, s := range x.others {
		line("in "+s.dialect, "%s", orNone(s.text, "none: "+s.why))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
