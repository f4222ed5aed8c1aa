package url

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
)

// maxOpenCPILength is the room for a string in OpenCPI's port descriptors.
const maxOpenCPILength = 255

// OpenCPIIDs is how many endpoint ids OpenCPI's software has. It indexes arrays of so many elements by them, so they have to be below
// it (quirk D1-7), and refuses strings with another number of ids, but 0. Where OCPI_MAX_MAILBOX is set there it wants that number; the arrays stay.
const OpenCPIIDs = 10

// allIDs is the number of ids in strings of endpoints for which nobody chose one.
const allIDs = math.MaxUint16

// String returns e in its own dialect, with its options. A string that Parse
// accepted comes back with the same meaning, though not always the same bytes:
// MAC and IP addresses are written in one way, options are sorted by key.
//
// The suffix is left out unless e is complete; Short has none. Spec and Appendix have no uuid.
func (e Endpoint) String() string {
	text := e.text(e.Dialect)
	if e.Options.Len() > 0 {
		text += "?" + e.Options.String()
	}
	return text
}

// Format returns e in dialect d, as real readers of d accept it, or a
// *FormatError if e holds too little or too much for that.
// The options of e are left out of all dialects but Short, which no peer reads.
// What d cannot say is left out: the uuid in Spec and Appendix, the interface in
// Appendix, the whole address in Datagram2, the suffix in Short. What OpenCPI reads
// has [OpenCPIIDs] in place of a number of ids of 65535, which nobody chose.
func (e Endpoint) Format(d Dialect) (string, error) {
	if reason := e.misfit(d); reason != "" {
		return "", &FormatError{Dialect: d, Reason: reason}
	}
	e = e.reducedTo(d)
	text := e.String()
	if d.ReadByOpenCPI() && len(text) > maxOpenCPILength {
		return "", &FormatError{Dialect: d, Reason: fmt.Sprintf("%d bytes are more than the %d OpenCPI takes", len(text), maxOpenCPILength)}
	}
	parsed, wrong := parse(text)
	if wrong != nil {
		return "", &FormatError{Dialect: d, Reason: fmt.Sprintf("expected %s at byte %d of %s", wrong.Expected, wrong.Offset, quoteShort(text, 80))}
	}
	parsed.Dialect = d // dialects share their incomplete strings
	if parsed != e {
		return "", &FormatError{Dialect: d, Reason: quoteShort(text, 80) + " would be read as another endpoint"}
	}
	return text, nil
}

// reducedTo returns e with only what a string of dialect d can say.
func (e Endpoint) reducedTo(d Dialect) Endpoint {
	e.Dialect = d
	if e.Scheme == Ether {
		e.Addr, e.Host = netip.AddrPort{}, ""
	} else {
		e.Interface, e.MAC = "", MAC{}
		e.Addr = netip.AddrPortFrom(e.Addr.Addr().Unmap(), e.Addr.Port())
	}
	if !e.Complete() || d == Short {
		e.Size, e.ID, e.Max, e.UUID = 0, 0, 0, ""
	}
	if d.ReadByOpenCPI() && e.Max == allIDs {
		e.Max = OpenCPIIDs
	}
	switch d {
	case Spec:
		e.UUID = ""
	case Appendix:
		e.UUID, e.Interface = "", ""
	case Datagram2:
		e.Interface, e.MAC = "", MAC{}
	}
	if d != Short {
		e.Options = Options{}
	}
	return e
}

// misfit returns why e has no text in d, or "". Field values are left to parse.
func (e Endpoint) misfit(d Dialect) string {
	switch {
	case e.Scheme != Ether && e.Scheme != UDP:
		return "endpoint has no scheme"
	case d > Short:
		return "no such dialect"
	case d.etherOnly() && e.Scheme != Ether:
		return "dialect is for Ethernet only"
	case d == Short:
		return ""
	case (e.Size == 0) != (e.ID == 0):
		return fmt.Sprintf("suffix needs a size and an id, endpoint has size %d and id %d", e.Size, e.ID)
	case d.ReadByOpenCPI() && e.ID >= OpenCPIIDs:
		return fmt.Sprintf("endpoint has id %d, and OpenCPI takes 1 to %d: open it with one of them", e.ID, OpenCPIIDs-1)
	case d.ReadByOpenCPI() && e.Complete() && e.UUID == "":
		return "endpoint has no uuid"
	case d == Datagram2 && !e.Complete():
		return "endpoint has no size and id"
	case d == Datagram2:
		return ""
	case e.Scheme == Ether && !e.MAC.IsValid():
		return "endpoint has no MAC address"
	case e.Scheme == Ether && e.Interface == "" && d != Appendix:
		return "endpoint has no interface name"
	case e.Scheme == UDP && e.Host == "" && !e.Addr.Addr().IsValid():
		return "endpoint has no IP address"
	case e.Host != "" && e.Scheme == UDP && d.ReadByOpenCPI():
		return "OpenCPI looks no names up: it takes IPv4 addresses only"
	case e.Scheme == UDP && d.ReadByOpenCPI() && !e.Addr.Addr().Unmap().Is4():
		// OpenCPI reads it by inet_aton.
		return "OpenCPI takes IPv4 addresses only"
	}
	return ""
}

func (e Endpoint) text(d Dialect) string {
	switch {
	case e.Scheme != Ether && e.Scheme != UDP:
		return ""
	case d == Short:
		return e.shortText()
	case d == Appendix:
		text := protocolAppendix + ":" + e.MAC.String()
		if e.Complete() {
			text += ":" + e.numbers()
		}
		return text
	}
	text := e.Scheme.String()
	address := e.addressText(d)
	if address != "" || e.Complete() {
		text += ":" + address
	}
	if e.Complete() {
		text += ";"
		if e.UUID != "" && d != Spec {
			text += e.UUID + "."
		}
		text += e.numbers()
	}
	return text
}

func (e Endpoint) addressText(d Dialect) string {
	switch {
	case e.Scheme == UDP && (d == Spec || d == Legacy):
		return e.ipText(";")
	case e.Scheme == UDP:
		return e.ipText(":")
	case d == Datagram2:
		return ""
	case d == Prefixed:
		return etherPrefix + e.stationText()
	}
	return e.stationText()
}

func (e Endpoint) stationText() string {
	if e.Interface == "" || !e.MAC.IsValid() {
		return e.Interface + e.MAC.String()
	}
	return e.Interface + "/" + e.MAC.String()
}

func (e Endpoint) ipText(separator string) string {
	ip := e.Addr.Addr().Unmap()
	host := e.Host
	switch {
	case host != "":
	case !ip.IsValid():
		return ""
	case ip.Is6():
		host = "[" + ip.String() + "]"
	default:
		host = ip.String()
	}
	return host + separator + strconv.Itoa(int(e.Addr.Port()))
}

func (e Endpoint) shortText() string {
	if e.Scheme == Ether {
		return protocolEtherShort + ":" + e.stationText()
	}
	switch {
	case e.Host != "", e.Addr.Addr().IsValid():
		return protocolUDPShort + ":" + e.ipText(":")
	case e.Addr.Port() != 0:
		return protocolUDPShort + ":" + strconv.Itoa(int(e.Addr.Port()))
	}
	return protocolUDPShort
}

func (e Endpoint) numbers() string {
	return fmt.Sprintf("%d.%d.%d", e.Size, e.ID, e.Max)
}
