// Package portmap asks the port mapper of a machine (RFC 1833, version 2; today rpcbind) where its
// programs of ONC RPC listen.
//
//	c, err := rpc.Dial(ctx, "tcp:10.0.0.2:"+portmap.Port, nil)
//	port, err := portmap.GetPort(ctx, c, nfs3.MountProgram, portmap.TCP)
//	all, err := portmap.Dump(ctx, c)
package portmap

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// Port is where port mappers listen.
const Port = "111"

// Procedures of Program.
const (
	ProcGetPort = 3
	ProcDump    = 4
)

// Program is the port mapper. Its procedures that register programs, and call them, are named only:
// port mappers take these from their own machine alone.
var Program = &rpc.Program{Number: 100000, Version: 2, Name: "PMAP", Procedures: []rpc.Procedure{
	{Name: "NULL"},
	{Name: "SET"},
	{Name: "UNSET"},
	{Name: "GETPORT", Idempotent: true, MaxResults: 4},
	{Name: "DUMP", Idempotent: true, MaxResults: 4 + MaxMappings*mappingLength},
	{Name: "CALLIT"},
}}

// Protocol is what a program is spoken over, by the number that IP has for it.
type Protocol uint32

// Protocols.
const (
	TCP Protocol = 6
	UDP Protocol = 17
)

func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return fmt.Sprintf("protocol %d", uint32(p))
}

// Mapping says where one version of a program listens.
type Mapping struct {
	Program, Version uint32
	Protocol         Protocol
	Port             uint16
}

// MaxMappings is how many mappings a port mapper may tell.
const MaxMappings = 4096

// mappingLength is the length of a mapping in the list, with the word before it.
const mappingLength = 5 * 4

// MarshalXDR encodes the mapping.
func (m *Mapping) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(m.Program)
	e.Uint32(m.Version)
	e.Uint32(uint32(m.Protocol))
	e.Uint32(uint32(m.Port))
}

// UnmarshalXDR decodes the mapping.
func (m *Mapping) UnmarshalXDR(d *xdr.Decoder) {
	m.Program = d.Uint32()
	m.Version = d.Uint32()
	m.Protocol = Protocol(d.Uint32())
	m.Port = port(d)
}

func port(d *xdr.Decoder) uint16 {
	n := d.Uint32()
	if n > 65535 {
		d.Fail(fmt.Sprintf("a port is %d", n))
	}
	return uint16(n)
}

// Mappings is the results of DUMP: a list on the wire.
type Mappings []Mapping

// MarshalXDR encodes the list.
func (l Mappings) MarshalXDR(e *xdr.Encoder) {
	for i := range l {
		e.Bool(true)
		l[i].MarshalXDR(e)
	}
	e.Bool(false)
}

// UnmarshalXDR decodes the list.
func (l *Mappings) UnmarshalXDR(d *xdr.Decoder) {
	for *l = (*l)[:0]; d.Bool(); {
		if len(*l) == MaxMappings {
			d.Fail(fmt.Sprintf("more than %d mappings", MaxMappings))
			return
		}
		var m Mapping
		m.UnmarshalXDR(d)
		*l = append(*l, m)
	}
}

// ErrNotRegistered says that the port mapper does not know a program.
var ErrNotRegistered = errors.New("the program is not registered")

// result is the results of GETPORT.
type result uint16

func (r *result) UnmarshalXDR(d *xdr.Decoder) { *r = result(port(d)) }

// GetPort returns the port of a program. [ErrNotRegistered]: it has none. A port mapper that does not know the version
// of the program may tell the port of another one.
func GetPort(ctx context.Context, c *rpc.Client, p *rpc.Program, over Protocol) (uint16, error) {
	var r result
	if err := c.Bind(Program, rpc.None).Call(ctx, ProcGetPort, &Mapping{p.Number, p.Version, over, 0}, &r, nil); err != nil {
		return 0, err
	}
	if r == 0 {
		return 0, fmt.Errorf("look up the port of %v over %v: %w", p, over, ErrNotRegistered)
	}
	return uint16(r), nil
}

// Dump returns all mappings.
func Dump(ctx context.Context, c *rpc.Client) (Mappings, error) {
	var l Mappings
	err := c.Bind(Program, rpc.None).Call(ctx, ProcDump, nil, &l, nil)
	return l, err
}
