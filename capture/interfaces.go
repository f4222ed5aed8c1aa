package capture

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hardwareTypes are the kinds of interfaces, by the kernel's numbers, whose packets can be
// read, with what capture files call them.
var hardwareTypes = []struct {
	kind uint16
	link int
}{
	{unix.ARPHRD_ETHER, linkEthernet},
	{unix.ARPHRD_LOOPBACK, linkEthernet},
	{unix.ARPHRD_NONE, linkRaw},
	{unix.ARPHRD_RAWIP, linkRaw},
	{unix.ARPHRD_PPP, linkRaw},
	{unix.ARPHRD_TUNNEL, linkRaw},
	{unix.ARPHRD_TUNNEL6, linkRaw},
	{unix.ARPHRD_SIT, linkRaw},
}

func linkTypeOf(hardware uint16) int {
	for _, h := range hardwareTypes {
		if h.kind == hardware {
			return h.link
		}
	}
	return linkUnknown
}

// interfaceNamed returns one that packets can pass.
func interfaceNamed(name string) (*net.Interface, error) {
	if name == Any {
		return &net.Interface{Name: Any}, nil // to the kernel, number 0
	}
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("no interface %s; there are %s", name, interfaceNames())
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("interface %s is down; bring it up with: ip link set %s up", name, name)
	}
	return ifi, nil
}

func interfaceNames() string {
	all, err := net.Interfaces()
	if err != nil {
		return "none that the system tells: " + err.Error()
	}
	names := []string{Any}
	for _, ifi := range all {
		names = append(names, ifi.Name)
	}
	return strings.Join(names, ", ")
}

// begin makes the interfaces known that are there now.
func (s *Live) begin(ifi *net.Interface) error {
	now := time.Now()
	if s.name != Any {
		link := s.linkTypeOf(ifi)
		if link == linkUnknown {
			return errors.New("its kind of packets is not supported, only Ethernet, loopback and bare IP")
		}
		s.passed.at(ifi.Index, link, now)
		return nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, ifi := range all {
		if link := s.linkTypeOf(&ifi); link != linkUnknown && ifi.Flags&net.FlagUp != 0 {
			s.passed.at(ifi.Index, link, now)
		}
	}
	return nil
}

// linkTypeOf asks the kernel what an interface is.
func (s *Live) linkTypeOf(ifi *net.Interface) int {
	link := linkUnknown
	request, err := unix.NewIfreq(ifi.Name)
	if err != nil {
		return link
	}
	s.raw.Control(func(fd uintptr) {
		if unix.IoctlIfreq(int(fd), unix.SIOCGIFHWADDR, request) == nil {
			link = linkTypeOf(request.Uint16()) // the family of the address
		}
	})
	return link
}

// kernelNames returns how the kernel is asked for the name of the interface with a number, in
// the namespace of a socket. That is "" if there is none any more.
func kernelNames(raw syscall.RawConn) func(index int) string {
	return func(index int) (name string) {
		request, err := unix.NewIfreq("-") // it has to have one
		if err != nil {
			return ""
		}
		raw.Control(func(fd uintptr) {
			request.SetUint32(uint32(index))
			if unix.IoctlIfreq(int(fd), unix.SIOCGIFNAME, request) == nil {
				name = request.Name()
			}
		})
		return name
	}
}

// namesLast is how long a name is believed: interfaces can be renamed, and one that comes may
// have the number of one that went.
const namesLast = time.Second

// passed are the interfaces that packets passed.
type passed struct {
	ask  func(index int) string
	list []Interface   // by the numbers of records
	last map[int]*seen // by the kernel's
}

type seen struct {
	number int
	asked  time.Time
}

// at returns number and name of the interface that the kernel gives that index, for a packet of
// that time. Under another name it is another one.
func (p *passed) at(index, link int, now time.Time) (number int, name string) {
	s := p.last[index]
	if s != nil && now.Sub(s.asked).Abs() < namesLast {
		is := p.list[s.number]
		if is.LinkType == link {
			return s.number, is.Name
		}
	}
	is := Interface{p.ask(index), link}
	if s != nil {
		was := p.list[s.number]
		if is == was || is.Name == "" && link == was.LinkType { // it is gone, and its packets come still
			s.asked = now
			return s.number, was.Name
		}
	}
	if len(p.list) == maxInterfaces || p.last == nil {
		p.list, p.last = p.list[:0], map[int]*seen{}
	}
	p.list = append(p.list, is)
	number = len(p.list) - 1
	p.last[index] = &seen{number, now}
	return number, is.Name
}
