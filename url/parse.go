package url

import (
	"fmt"
	"net/netip"
	"strings"
)

// Parse reads an endpoint string in any dialect. Its errors are of type *Error.
func Parse(s string) (Endpoint, error) {
	e, wrong := parse(s)
	if wrong != nil {
		return Endpoint{}, wrong
	}
	return e, nil
}

func parse(s string) (Endpoint, *Error) {
	if len(s) > MaxLength {
		return Endpoint{}, tooLong(s, MaxLength)
	}
	body, query, hasOptions := strings.Cut(s, "?")
	p := &parser{input: s, end: len(body)}
	e, wrong := p.endpoint()
	if wrong != nil {
		return Endpoint{}, wrong
	}
	if hasOptions {
		p.pos, p.end = len(s)-len(query), len(s)
		if e.Options, wrong = p.options(); wrong != nil {
			return Endpoint{}, wrong
		}
	}
	// String writes some addresses longer than they were read, and Parse has to read it.
	if len(e.String()) > MaxLength {
		return Endpoint{}, tooLong(s, len(s))
	}
	return e, nil
}

func tooLong(s string, offset int) *Error {
	return &Error{Input: s, Offset: offset, Expected: fmt.Sprintf("at most %d bytes", MaxLength)}
}

const (
	etherPrefix = "Ether:"
	protocols   = protocolEther + ", " + protocolUDP + ", " + protocolAppendix + ", " + protocolEtherShort + " or " + protocolUDPShort
)

func (p *parser) endpoint() (Endpoint, *Error) {
	protocol := p.until(":")
	switch protocol {
	case protocolEther, protocolUDP, protocolAppendix, protocolEtherShort, protocolUDPShort:
		p.pos += len(protocol)
	case "tcp":
		return Endpoint{}, p.expected(protocols + " (tcp is RDMA over TCP, of package verbs)")
	default:
		return Endpoint{}, p.expected(protocols)
	}
	switch protocol {
	case protocolEther:
		return p.ether()
	case protocolUDP:
		return p.udp()
	case protocolAppendix:
		return p.appendix()
	case protocolEtherShort:
		return p.etherShort()
	}
	return p.udpShort()
}

func (p *parser) ether() (Endpoint, *Error) {
	e := Endpoint{Scheme: Ether, Dialect: OpenCPI}
	p.accept(':')
	if p.atEnd() {
		return e, nil
	}
	if p.accept(';') {
		e.Dialect = Datagram2
		wrong := p.suffix(&e)
		return e, wrong
	}
	prefixed := p.acceptFold(etherPrefix)
	if wrong := p.station(&e); wrong != nil {
		return e, wrong
	}
	if !e.MAC.IsValid() {
		return e, p.expected("'/' and a MAC address")
	}
	if wrong := p.optionalSuffix(&e, ';'); wrong != nil {
		return e, wrong
	}
	switch {
	case prefixed:
		e.Dialect = Prefixed
	case e.UUID == "":
		e.Dialect = Spec
	}
	return e, nil
}

func (p *parser) appendix() (Endpoint, *Error) {
	e := Endpoint{Scheme: Ether, Dialect: Appendix}
	if !p.accept(':') {
		return e, p.expected("':' and a MAC address")
	}
	mac, wrong := p.mac()
	if wrong != nil {
		return e, wrong
	}
	e.MAC = mac
	if wrong := p.optionalSuffix(&e, ':'); wrong != nil {
		return e, wrong
	}
	return e, nil
}

func (p *parser) etherShort() (Endpoint, *Error) {
	e := Endpoint{Scheme: Ether, Dialect: Short}
	if !p.accept(':') {
		return e, p.expected("':' and an interface name")
	}
	if wrong := p.station(&e); wrong != nil {
		return e, wrong
	}
	return e, p.shortEnd()
}

// station reads what stands for an Ethernet station: interface/mac, interface, or mac.
func (p *parser) station(e *Endpoint) *Error {
	name := p.until("/;")
	switch {
	case p.pos+len(name) < p.end && p.input[p.pos+len(name)] == '/':
		if wrong := p.interfaceName(name); wrong != nil {
			return wrong
		}
		e.Interface = name
		p.pos += len("/")
	case !strings.Contains(name, ":"):
		e.Interface = name
		return p.interfaceName(name)
	}
	mac, wrong := p.mac()
	e.MAC = mac
	return wrong
}

func (p *parser) udp() (Endpoint, *Error) {
	e := Endpoint{Scheme: UDP, Dialect: OpenCPI}
	p.accept(':')
	if p.atEnd() {
		return e, nil
	}
	ip, wrong := p.host(&e)
	if wrong != nil {
		return e, wrong
	}
	var port uint64
	colon := false
	switch {
	case p.accept(':'):
		colon = true
		port, wrong = p.number("a UDP port from 0 to 65535", 0, 65535)
	case p.portFollows():
		p.accept(';')
		port, wrong = p.number("a UDP port from 0 to 65535, or the suffix size.id.max", 0, 65535)
	}
	if wrong != nil {
		return e, wrong
	}
	e.Addr = netip.AddrPortFrom(ip, uint16(port))
	if wrong := p.optionalSuffix(&e, ';'); wrong != nil {
		return e, wrong
	}
	switch {
	case colon:
		e.Dialect = OpenCPI
	case e.UUID != "":
		e.Dialect = Legacy
	default:
		e.Dialect = Spec
	}
	return e, nil
}

// portFollows tells "ip;port" from "ip;size.id.max", which legacy hosts write
// when the system chose the port.
func (p *parser) portFollows() bool {
	field, isField := strings.CutPrefix(p.rest(), ";")
	field, _, _ = strings.Cut(field, ";")
	return isField && !strings.ContainsAny(field, ".-")
}

func (p *parser) udpShort() (Endpoint, *Error) {
	e := Endpoint{Scheme: UDP, Dialect: Short}
	if !p.accept(':') {
		return e, p.shortEnd()
	}
	var ip netip.Addr
	var port uint64
	var wrong *Error
	if strings.ContainsFunc(p.rest(), notOfNumber) {
		ip, wrong = p.host(&e)
		if wrong == nil && p.accept(':') {
			port, wrong = p.number("a UDP port from 0 to 65535", 0, 65535)
		}
	} else {
		port, wrong = p.number("a UDP port from 0 to 65535, an IP address, or the name of a host", 0, 65535)
	}
	if wrong != nil {
		return e, wrong
	}
	e.Addr = netip.AddrPortFrom(ip, uint16(port))
	return e, p.shortEnd()
}

// notOfNumber tells an address or a name from a port, if only by its first byte.
func notOfNumber(r rune) bool {
	return strings.ContainsRune(".[:-_", r) || r < 0x80 && isLetter(byte(r))
}

func (p *parser) shortEnd() *Error {
	if !p.atEnd() {
		return p.expected("the end of the short form, or '?' and options")
	}
	return nil
}

func (p *parser) optionalSuffix(e *Endpoint, separator byte) *Error {
	if p.atEnd() {
		return nil
	}
	if !p.accept(separator) {
		return p.expected("'" + string(separator) + "' and the suffix size.id.max, or the end")
	}
	return p.suffix(e)
}

func (p *parser) suffix(e *Endpoint) *Error {
	sizeExpected := "a size from 1 to 4294967296 bytes"
	if e.Dialect != Appendix {
		if strings.Contains(p.until("."), "-") {
			if wrong := p.uuid(e); wrong != nil {
				return wrong
			}
		} else {
			sizeExpected += ", or a uuid"
		}
	}
	size, wrong := p.number(sizeExpected, 1, MaxSize)
	if wrong != nil {
		return wrong
	}
	if !p.accept('.') {
		return p.expected("'.' and an endpoint id")
	}
	idPosition := p.pos
	id, wrong := p.number("an endpoint id from 1 to 65535", 1, 65535)
	if wrong != nil {
		return wrong
	}
	if !p.accept('.') {
		return p.expected("'.' and the number of endpoint ids")
	}
	maximum, wrong := p.number("a number of endpoint ids from 0 to 65535", 0, 65535)
	if wrong != nil {
		return wrong
	}
	if !p.atEnd() {
		return p.expected("the end of the suffix, or '?' and options")
	}
	if maximum != 0 && id > maximum {
		return p.expectedAt(idPosition, "an endpoint id not above the number of endpoint ids")
	}
	e.Size, e.ID, e.Max = size, uint16(id), uint16(maximum)
	return nil
}
