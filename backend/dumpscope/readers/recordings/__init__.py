"""What other tools recorded: logs, trees and folders of tensors, each read as the calls of one rank."""
