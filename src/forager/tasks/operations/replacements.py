"""Operations on products that also change their tasks; they belong to the group of the products."""

from __future__ import annotations

from pydantic import Field

from forager.operations.models import ResponseModel
from forager.operations.operation import Context, Scope
from forager.products.operations import ProductId, products
from forager.tasks.alarms import accept_replacement

__all__ = ["products"]


class AcceptedReplacement(ResponseModel):
    """The product that is stored at the next visit."""

    product_id: int = Field(description="The former product, which is discontinued.")
    name: str = Field(description="Name of the product that the page shows now.")
    url: str = Field(description="URL at which the product is stored.")


@products.operation(
    "accept",
    "POST /products/{product_id}/accept",
    scope=Scope.OPERATE,
    confirm=True,
    done="{name} is stored at the next visit; product {product_id} is discontinued",
    button="Accept the other product",
)
async def accept(context: Context, product_id: ProductId) -> AcceptedReplacement:
    """Accept the other product that a page shows: it begins its own history at the next visit."""
    found = await accept_replacement(context.database, str(product_id))
    return AcceptedReplacement.of(found)
