"""The page: what was spent, by whom and why, in one HTML file that asks nothing of the network; and one per team."""

from orchestration.publish.page.files import Pages, write_pages

__all__ = ["Pages", "write_pages"]
