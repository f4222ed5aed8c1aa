package bench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What [Turns].Congestion may be, besides the name of a congestion controller.
const (
	// FastestController is the controller with which the stream was fastest in a short trial of each.
	FastestController = "auto"
	// DefaultController is the one that the machine gives a connection by itself.
	DefaultController = "default"
)

// MostControllerName is how long the name of a congestion controller may be: the kernel has TCP_CA_NAME_MAX, its end included.
const MostControllerName = 15

const (
	availableFile = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	defaultFile   = "/proc/sys/net/ipv4/tcp_congestion_control"
)

// Controllers are the congestion controllers of TCP that this process can give a connection.
type Controllers struct {
	Default string // what a connection has by itself; "": the system does not tell
	Usable  []string
	Refused []RefusedController
}

// RefusedController is a congestion controller that the system does not let this process use.
type RefusedController struct {
	Name string
	Err  error
}

func (r RefusedController) String() string {
	if errors.Is(r.Err, unix.EPERM) {
		return r.Name + ", which only root may use (net.ipv4.tcp_allowed_congestion_control)"
	}
	if errors.Is(r.Err, unix.ENOENT) {
		return r.Name + ", which this kernel does not have"
	}
	return fmt.Sprintf("%s: %v", r.Name, r.Err)
}

// loadable are the controllers whose module the kernel loads when root asks for one. Ordinary users get what is loaded.
var loadable = []string{"cubic", "bbr"}

// FindControllers returns the controllers that the kernel has and those that it can load. It tries each on a socket.
func FindControllers() Controllers {
	available, _ := os.ReadFile(availableFile)
	byItself, _ := os.ReadFile(defaultFile)
	names := strings.Fields(string(available))
	for _, name := range loadable {
		if !slices.Contains(names, name) && os.Geteuid() == 0 {
			names = append(names, name)
		}
	}
	return sortControllers(strings.TrimSpace(string(byItself)), names, tryController)
}

// sortControllers sorts names by whether they can be used. The default can always be used, as a connection has it by itself. What the
// system does not have at all is no refusal.
func sortControllers(byItself string, names []string, try func(name string) error) Controllers {
	c := Controllers{Default: byItself}
	if byItself != "" {
		c.Usable = append(c.Usable, byItself)
	}
	for _, name := range names {
		if name == byItself {
			continue
		}
		switch err := try(name); {
		case err == nil:
			c.Usable = append(c.Usable, name)
		case !errors.Is(err, unix.ENOENT):
			c.Refused = append(c.Refused, RefusedController{name, err})
		}
	}
	return c
}

func tryController(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return setController(fd, name)
}

func setController(fd int, name string) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// controlled returns what net calls for a socket before it connects or listens, and which gives it a controller. After that it is too late:
// one that paced the connection leaves the pacing behind. With "" it leaves the socket alone.
func controlled(name string) func(network, address string, c syscall.RawConn) error {
	if name == "" {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = setController(int(fd), name) })
		if err != nil {
			return fmt.Errorf("congestion controller %s: %w", name, err)
		}
		return failed
	}
}

// controllerName is the name of a controller as a plan has it.
type controllerName [MostControllerName + 1]byte

func nameController(name string) (n controllerName) {
	copy(n[:MostControllerName], name)
	return n
}

// String returns the name; "": the machine's default.
func (n controllerName) String() string {
	name, _, _ := bytes.Cut(n[:], []byte{0})
	return printable(name)
}

// served returns the name if the kernel has that controller already and this process may use it: a client must not have a server load modules.
func (n controllerName) served() (name string, ok bool) {
	if n == (controllerName{}) {
		return "", true
	}
	available, _ := os.ReadFile(availableFile)
	name = n.String()
	return name, slices.Contains(strings.Fields(string(available)), name) && tryController(name) == nil
}

// Contender is a carrier, and the congestion controller of its connection: "" is the machine's default, or that it has none.
type Contender struct {
	Carrier    Carrier
	Controller string
}

// Trial is how fast a controller was.
type Trial struct {
	Controller string
	PerSecond  float64
}

// FastestFirst returns the median of each controller's trials, the fastest first. Of equal ones that comes first which was tried first.
func FastestFirst(trials []Trial) (medians []Trial) {
	rates := make(map[string][]float64)
	for _, t := range trials {
		if rates[t.Controller] == nil {
			medians = append(medians, Trial{Controller: t.Controller})
		}
		rates[t.Controller] = append(rates[t.Controller], t.PerSecond)
	}
	for i := range medians {
		medians[i].PerSecond = spreadOf(rates[medians[i].Controller]).Median
	}
	slices.SortStableFunc(medians, func(a, b Trial) int { return cmp.Compare(b.PerSecond, a.PerSecond) })
	return medians
}

// Choice says which congestion controller a carrier has turns with, and why.
type Choice struct {
	Carrier    Carrier
	Controller string  // "": the system does not tell
	Default    string  // the machine's, with which it has turns as well if that is another one
	Trials     []Trial // the fastest first; none: there was nothing to choose from
	Refused    []RefusedController
	// ClientOnly is true if the server cannot set it: what the server sends has its machine's default.
	ClientOnly bool
}

// TrialRounds is how many trials each controller has. They are short turns of each controller, alternated: one alone can fall into a moment in which others had the machine.
const (
	TrialRounds = 3
	leastTrial  = 50 * time.Millisecond
	mostTrial   = 300 * time.Millisecond
)

// TrialTime is how long a trial takes where a turn takes that long.
func TrialTime(turn time.Duration) time.Duration { return min(max(turn/2, leastTrial), mostTrial) }
