package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/dgrdma/dgrdma/url"
)

var urlCommand = command{
	name: "url", summary: "explain endpoint strings, and convert them", args: "URL...",
	about: `Explains endpoint strings field by field, says what is missing for a peer to
be reached, and how other software spells the same endpoint.

  dgrdmacat url 'ocpi-udp-rdma:10.0.0.2;7100;1048576.2.16'
  dgrdmacat url --dialect prefixed 'ocpi-ether-rdma:eth0/02:00:00:00:00:01;65536.2.9' --uuid new

Where a string stands for an endpoint of one's own, a short one will do; the
complete one, which peers are told, is printed when the endpoint opens:

  udp  udp:7100  udp:10.0.0.2  udp:10.0.0.2:7100  udp:[fe80::1%eth0]:7100
  ether:eth0  ether:02:00:00:00:00:01  ether:eth0/02:00:00:00:00:01

A port alone is at every address of this machine, IPv4 and IPv6, as [::] is; 0.0.0.0
at those of IPv4. Answers leave from the address that was asked. The complete string
names one of them, that on the way to the default route: any other does in its place.

A host's name does in place of an IP address, udp:camera.local:7100, where a string is
opened or dialed: the address is looked up. Over UDP such a string with a port will do
for a peer, too, if that is another dgrdmacat or a program of this library: it is asked
for the rest.

A complete string has the address, and at its end the size of the endpoint's
memory in bytes, its id, and the number of ids in use (ids go from 1 to it; 0 leaves
it open). OpenCPI's software puts a uuid before these. The dialects:

  spec       ocpi-udp-rdma:IP;PORT;SIZE.ID.MAX       ocpi-ether-rdma:INTERFACE/MAC;SIZE.ID.MAX
  opencpi    ocpi-udp-rdma:IP:PORT;UUID.SIZE.ID.MAX  ocpi-ether-rdma:INTERFACE/MAC;UUID.SIZE.ID.MAX
  legacy     ocpi-udp-rdma:IP;PORT;UUID.SIZE.ID.MAX
  prefixed   ocpi-ether-rdma:Ether:INTERFACE/MAC;UUID.SIZE.ID.MAX
  datagram2  ocpi-ether-rdma:;UUID.SIZE.ID.MAX
  appendix   ocpi-ether-l2-rdma:MAC:SIZE.ID.MAX
  short      what is typed, as above

Options follow a '?', as in udp:7100?mtu=9000&gso=off. They count on the side
that opens or dials the string, and are never told to peers. Where one is wrong or
unknown the command ends with 2, as it does where a string is.

Quote strings: ';', '?' and '&' mean something to the shell.`,
	flags: func(fs *flag.FlagSet) action {
		name := new(string)
		fs.Var(&oneOf{name, dialectNames()}, "dialect", "print only the string in this `dialect`: "+strings.Join(dialectNames(), ", "))
		uuid := fs.String("uuid", "", "put this `uuid` into strings that have none; new makes one")
		asJSON := fs.Bool("json", false, "print one JSON object per string")
		return func(_ context.Context, std *stdio, args []string) error {
			dialect, known := dialectNamed(*name)
			switch {
			case len(args) == 0:
				return badUsage("which string? \"dgrdmacat url -h\" shows some")
			case *name != "" && !known:
				return badUsage("--dialect %s: there are %s", *name, strings.Join(dialectNames(), ", "))
			case *name != "" && *asJSON:
				return badUsage("--dialect prints the string alone; without it, --json has all dialects")
			}
			if *uuid == "new" {
				*uuid = newUUID()
			} else if *uuid != "" {
				if _, err := url.Parse("ocpi-ether-rdma:;" + *uuid + ".1.1.1"); err != nil {
					return badUsage("--uuid %s: need 8-4-4-4-12 hexadecimal digits, or new", *uuid)
				}
			}
			var wrong, failed error // a string, and what is written
			for _, s := range args {
				u, err := url.Parse(s)
				if err == nil && u.UUID == "" && u.Complete() {
					u.UUID = *uuid
				}
				if *name != "" && err == nil {
					var text string
					if text, err = inDialect(u, dialect); err == nil {
						_, failed = fmt.Fprintln(std.out, text)
						if note := openCPIsIDs(u, dialect, text); note != "" {
							fmt.Fprintln(std.err, note)
						}
					}
				} else if *name == "" && *asJSON {
					failed = json.NewEncoder(std.out).Encode(explain(s, u, err))
				} else if err == nil {
					failed = explain(s, u, nil).print(std.out)
				}
				if failed != nil {
					return failed
				}
				if isTCP(s) {
					err = fmt.Errorf("%s: %s", s, overTCPAlone("give one such as udp:10.0.0.2:7100"))
				}
				wrong = errors.Join(wrong, pointedOut(err), optionsWrong(u))
			}
			if wrong != nil {
				return usageError{wrong}
			}
			return nil
		}
	},
}

// eachDialect lists the dialects, and who speaks each.
var eachDialect = []struct {
	dialect url.Dialect
	about   string
}{
	{url.Spec, "the specification's"},
	{url.OpenCPI, "OpenCPI's software"},
	{url.Legacy, "OpenCPI's software before 2021"},
	{url.Prefixed, "OpenCPI's cards, and hosts with its second driver"},
	{url.Datagram2, "what OpenCPI's second driver says of itself"},
	{url.Appendix, "the specification's section 6"},
	{url.Short, "what people type"},
}

func dialectNames() (names []string) {
	for _, d := range eachDialect {
		names = append(names, d.dialect.String())
	}
	return names
}

func dialectNamed(name string) (url.Dialect, bool) {
	for _, d := range eachDialect {
		if d.dialect.String() == name {
			return d.dialect, true
		}
	}
	return 0, false
}

// inDialect writes an endpoint in a dialect, or says what that needs.
func inDialect(u url.Endpoint, d url.Dialect) (string, error) {
	text, err := u.Format(d)
	misfit := (*url.FormatError)(nil)
	if !errors.As(err, &misfit) || u.UUID != "" {
		return text, err
	}
	u.UUID = newUUID()
	if _, still := u.Format(d); still == nil {
		return "", &url.FormatError{Dialect: d, Reason: misfit.Reason + ", --uuid new makes one"}
	}
	return "", err
}

// newUUID returns a random one, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// optionsWrong says why an endpoint does not open with the options of its string.
func optionsWrong(u url.Endpoint) (wrong error) {
	for key, value := range u.Options.All() {
		_, err := checkOption(u, key, value)
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

// pointedOut shows with a caret where a string is wrong.
func pointedOut(err error) error {
	var wrong *url.Error
	if !errors.As(err, &wrong) {
		return err
	}
	const before, after = 60, 16 // bytes shown around the place
	from, to := max(0, wrong.Offset-before), min(len(wrong.Input), wrong.Offset+after)
	shown, column := "", 0
	if from > 0 {
		shown = "..."
	}
	shown += visible(wrong.Input[from:wrong.Offset])
	column = len(shown)
	shown += visible(wrong.Input[wrong.Offset:to])
	if to < len(wrong.Input) {
		shown += "..."
	}
	return fmt.Errorf("byte %d: expected %s\n  %s\n  %s^", wrong.Offset, wrong.Expected, shown, strings.Repeat(" ", column))
}

// visible writes whatever is no printable ASCII as \xHH, so that each byte has
// its columns.
func visible(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; ' ' <= c && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
