package netns

import "os"

// controllerFile has the congestion controller of TCP that connections of this network namespace begin with.
const controllerFile = "/proc/sys/net/ipv4/tcp_congestion_control"

// SetController gives connections that are made in the namespace from now on a congestion controller.
func (n *Namespace) SetController(name string) (err error) {
	n.In(func() { err = os.WriteFile(controllerFile, []byte(name), 0) })
	return err
}
