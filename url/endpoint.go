package url

import "net/netip"

// MaxLength is the length in bytes of the longest endpoint string, with options.
const MaxLength = 4096

// MaxSize is the largest memory of an endpoint: addresses on the wire have 32 bits.
const MaxSize = 1 << 32

// Endpoint is the content of an endpoint string. Fields a string does not have
// are zero. Endpoints are comparable with ==; two spellings of one endpoint
// differ in Dialect.
type Endpoint struct {
	Scheme  Scheme
	Dialect Dialect

	// Interface and MAC belong to Ether. Either may be missing.
	// In the string of a remote endpoint, Interface is a name on that host.
	Interface string
	MAC       MAC

	// Addr and Host belong to UDP. With a Host, the name of a machine, Addr has the port
	// alone: who uses the endpoint looks the name up. If neither Host nor Addr.Addr() says
	// anything, it is any address.
	Addr netip.AddrPort
	Host string

	Size uint64 // bytes of memory
	ID   uint16 // endpoint id; 0: none
	Max  uint16 // number of endpoint ids; 0: not said
	UUID string // OpenCPI's name for the endpoint; may be ""

	Options Options
}

// Complete reports whether e has the suffix with its size and id.
func (e Endpoint) Complete() bool { return e.Size != 0 && e.ID != 0 }

// Reachable reports whether e has an address that frames can be sent to, or the name of
// a host that may have one. Incomplete local strings do not, and those datagram2 hosts write do not.
func (e Endpoint) Reachable() bool {
	switch e.Scheme {
	case Ether:
		return e.MAC.IsValid()
	case UDP:
		a := e.Addr.Addr()
		return (e.Host != "" || a.IsValid() && !a.IsUnspecified()) && e.Addr.Port() != 0
	}
	return false
}

// MarshalText returns e.String(), or an error if Parse would refuse it or find
// another endpoint in it. The text of the zero Endpoint is empty.
func (e Endpoint) MarshalText() ([]byte, error) {
	if e == (Endpoint{}) {
		return nil, nil
	}
	text := e.String()
	parsed, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if parsed != e {
		return nil, &FormatError{Dialect: e.Dialect, Reason: quoteShort(text, 80) + " would be read as another endpoint"}
	}
	return []byte(text), nil
}

// UnmarshalText sets e to what Parse finds in text, or to the zero Endpoint if
// text is empty.
func (e *Endpoint) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*e = Endpoint{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*e = parsed
	return nil
}
