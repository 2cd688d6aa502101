package main

import "fmt"

// The plan of the orders: in which of three states each one is when the deployment begins, when it goes on, and which ones have a
// bad address.

const waves = 3 // a third of the orders goes on at a time

func orderID(number int) string { return fmt.Sprintf("order-%03d", number) }

// waitsFor returns how many signals an order has received before the deployment.
func waitsFor(number int) int { return number % len(signals) }

// waveOf returns the wave in which an order receives the other signals.
func waveOf(number int) int { return number / len(signals) % waves }

// hasBadAddress reports whether the receipt of an order cannot be sent at first. This is so for a fifth of the last wave.
func hasBadAddress(number int) bool {
	return waveOf(number) == waves-1 && (number/(len(signals)*waves)*len(signals)+waitsFor(number))%5 == 0
}

// hasShipped reports whether the first release had shipped an order before the deployment, so that the second one does not fit it.
func hasShipped(number int) bool { return waitsFor(number) == len(signals)-1 }

// numbers returns the orders for which chosen returns true.
func numbers(orders int, chosen func(int) bool) (some []int) {
	for n := range orders {
		if chosen(n) {
			some = append(some, n)
		}
	}
	return some
}
