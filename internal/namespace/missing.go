package namespace

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Missing returns what keeps this process from making network namespaces, or
// nothing.
func Missing() string {
	missing := missingCapabilities()
	if len(missing) > 0 {
		return fmt.Sprintf("needs %s", strings.Join(missing, " and "))
	}
	if err := tryNamespace(); err != nil {
		return err.Error()
	}
	return ""
}

func missingCapabilities() (missing []string) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return []string{"capabilities (" + err.Error() + ")"}
	}
	for _, c := range []struct {
		name   string
		number uint
	}{{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_NET_RAW", unix.CAP_NET_RAW}, {"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN}} {
		if data[c.number/32].Effective&(1<<(c.number%32)) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing
}

func tryNamespace() error {
	runtime.LockOSThread()
	here, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("look at this network namespace: %w", err)
	}
	defer leave(here)
	made, err := netns.New()
	if err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	return made.Close()
}
